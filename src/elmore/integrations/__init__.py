"""elmore inside other tools: one module per tool, imported only when used.

Each module is named after its tool and needs the extra of the same name. They use only what
`elmore` exports.
"""
