"""Models on disk: elmore's own folder, bilm-tf and AllenNLP HDF5, ELMoForManyLangs."""
