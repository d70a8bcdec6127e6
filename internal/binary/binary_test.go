package binary_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/internal/binary"
)

func TestMain(m *testing.M) { binary.Main(m) }

func TestExitCodes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.yaml")
	require.NoError(t, os.WriteFile(file, []byte("topology: x\n"), 0o600))
	tests := map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"help":              {[]string{"--help"}, 0, "Usage:", ""},
		"unknown command":   {[]string{"nope"}, 2, "", `unknown command "nope"`},
		"unknown flag":      {[]string{"topology", "validate", "--nope"}, 2, "", "unknown flag: --nope"},
		"missing argument":  {[]string{"topology", "validate"}, 2, "", "requires at least 1 arg"},
		"a faulty topology": {[]string{"topology", "validate", file}, 1, "", "t.yaml"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := binary.Run(t, "", tt.args...)
			require.Equal(t, tt.code, r.Code, "%s%s", r.Stdout, r.Stderr)
			require.Contains(t, r.Stdout, tt.stdout)
			require.Contains(t, r.Stderr+r.Stdout, tt.stderr)
		})
	}
}

func TestStart(t *testing.T) {
	p := binary.Start(t, "--help")
	p.WaitFor("Usage:")
	require.Zero(t, p.Wait())
	require.Contains(t, p.Stdout(), "quiesce [command]")
	require.Empty(t, p.Stderr())
}
