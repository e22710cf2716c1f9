"""The model of a pipeline or a tagger: loaded when first used, saved with it.

spaCy builds a pipeline from its settings before it reads its files, perhaps on another computer,
where the path in the settings does not exist. So nothing is loaded before it is needed.
"""

import tempfile
from pathlib import Path
from typing import Any

from elmore import ElmoreError, Embedder, load, load_model

FINGERPRINT = "fingerprint.txt"


class SavedModel:
    """A model by its path or hub id, or by its files in what another tool saved.

    The English model comes with elmore, so only its fingerprint is saved.
    """

    def __init__(
        self,
        source: str | Path | None,
        *,
        options: str | Path | None = None,
        device: str = "cpu",
        **settings: Any,
    ) -> None:
        self.source = source
        self.options = options
        self.device = device
        self.settings = settings
        self._embedder: Embedder | None = None

    @property
    def embedder(self) -> Embedder:
        """The embedder, loaded on first use."""
        if self._embedder is None:
            self._embedder = load(
                self.source, options=self.options, device=self.device, **self.settings
            )
        return self._embedder

    def to_files(self) -> dict[str, bytes]:
        """Return the names and contents of the files to save."""
        embedder = self.embedder
        files = {FINGERPRINT: embedder.model.fingerprint().encode()}
        if embedder.is_shipped:
            return files
        with tempfile.TemporaryDirectory() as folder:
            embedder.load_model().save_pretrained(folder)
            files |= {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        return files

    def from_files(self, files: dict[str, bytes]) -> None:
        """Load what `to_files` returned."""
        if FINGERPRINT not in files:
            raise ElmoreError(
                f"this was saved by elmore, but {FINGERPRINT} is missing; use an intact copy"
            )
        expected = files[FINGERPRINT].decode()
        weights = {name: data for name, data in files.items() if name != FINGERPRINT}
        if weights:
            with tempfile.TemporaryDirectory() as folder:
                for name, data in weights.items():
                    (Path(folder) / Path(name).name).write_bytes(data)
                try:
                    model = load_model(folder)
                except ElmoreError as error:  # whose message has the name of a temporary folder
                    message = str(error).replace(f"{folder}/", "the saved ")
                    raise ElmoreError(message) from error
            self._embedder = Embedder(model, **self.settings)
            if self.device != "cpu":
                self._embedder.to(self.device)
        found = self.embedder.model.fingerprint()
        if found != expected:
            self._embedder = None
            raise ElmoreError(
                "this was saved with another English model than the one in this elmore "
                f"(fingerprint {expected:.12} instead of {found:.12}); install the elmore that it "
                "was saved with, or train it again"
            )
