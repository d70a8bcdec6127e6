package apache

// Environment of the command that Run runs.
const (
	// EnvBootstrap is the address of the broker: host:port, several separated by commas.
	EnvBootstrap = "QUIESCE_TEST_BOOTSTRAP"
	// EnvStarts is "1" when tests may start clusters of their own (with Find and Start).
	EnvStarts = "QUIESCE_TEST_KAFKA_STARTS"
)
