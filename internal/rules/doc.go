// Package rules holds the style and structure rules of the module and runs them as tests: each says what to write
// instead. Its own tests show that every rule bites.
//
//	imports    who may import whom: machines are pure and apart, goka stays in its adapter, mains are mains
//	calls      machines read no clock
//	tests      no sleeping, no skipping without a listed reason
//	length     files, functions, mains, configs
//	names      no util, common or pkg; nothing marked unfinished; no path of somebody's machine
//
// An exception is an entry in exceptions.go with its reason; one that is no longer needed fails, too. The import rule is
// in .golangci.yml (depguard) as well, for editors.
package rules
