package configs

import "embed"

// Compare holds the configurations of docs/article.md, as compare/NAME.toml.
//
//go:embed compare/*.toml
var Compare embed.FS
