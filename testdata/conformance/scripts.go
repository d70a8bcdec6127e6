// Package scripts holds the conformance scripts, so that the binary carries them. See package conformance for the format.
package scripts

import "embed"

// FS has one file for each script.
//
//go:embed *.yaml
var FS embed.FS
