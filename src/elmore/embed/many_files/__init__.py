"""Embed many text files into a folder of vector files, shard by shard, in any process."""
