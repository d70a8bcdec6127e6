// Package cli is the body of the quiesce command: one file per subcommand, nothing that a test cannot call.
//
//	Run(ctx, args, stdin, stdout, stderr) -> exit code
//
// Results go to stdout, as text for people or, with --json, as one JSON value a line. Errors, notes and progress bars
// go to stderr; bars only when it is a terminal.
//
// A setting has one name in three places, the strongest first: flag --bootstrap-server, environment
// QUIESCE_BOOTSTRAP_SERVER, key bootstrap_server of quiesce.yaml (--config FILE, else ./quiesce.yaml, else the user's
// configuration folder). A key of the file that no command knows is an error, not a silence.
//
// # Exit codes
//
//	0    done              4  batch failed         7    batch inconsistent
//	1    error             5  batch cancelled      124  time-out of wait
//	2    usage             6  batch expired
//	3    batch completed with failures
package cli
