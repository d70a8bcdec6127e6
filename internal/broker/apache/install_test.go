//go:build unix

package apache

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// command writes an executable shell script.
func command(t *testing.T, dir, name, script string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

// machine is an environment that has nothing; a test adds what it wants to bin.
func machine(t *testing.T) (bin string) {
	t.Helper()
	bin = t.TempDir()
	t.Setenv("PATH", bin)
	t.Setenv("JAVA_HOME", "")
	t.Setenv("KAFKA_HOME", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", "")
	return bin
}

const java17 = `echo 'openjdk version "17.0.15" 2025-04-15' >&2`

func TestFindSaysWhatIsMissing(t *testing.T) {
	tests := map[string]struct {
		prepare func(t *testing.T, bin string)
		want    string
	}{
		"no Java":        {func(*testing.T, string) {}, "Java 17 or newer is not in PATH and JAVA_HOME is not set"},
		"old Java":       {func(t *testing.T, bin string) { command(t, bin, "java", `echo 'java version "11.0.2"' >&2`) }, "is version 11"},
		"Java 8":         {func(t *testing.T, bin string) { command(t, bin, "java", `echo 'java version "1.8.0_292"' >&2`) }, "is version 1"},
		"silent Java":    {func(t *testing.T, bin string) { command(t, bin, "java", "") }, "does not say its version"},
		"broken Java":    {func(t *testing.T, bin string) { command(t, bin, "java", "exit 3") }, "does not run"},
		"no JAVA_HOME":   {func(t *testing.T, bin string) { t.Setenv("JAVA_HOME", "/nowhere") }, "/nowhere/bin/java (from JAVA_HOME) does not run"},
		"no Maven":       {func(t *testing.T, bin string) { command(t, bin, "java", java17) }, "Maven (mvn) is not in PATH"},
		"bad KAFKA_HOME": {func(t *testing.T, bin string) { command(t, bin, "java", java17); t.Setenv("KAFKA_HOME", "/nowhere") }, "KAFKA_HOME is /nowhere, which has no libs/kafka_2.13-4.*.jar"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.prepare(t, machine(t))
			_, err := Find(context.Background())
			require.ErrorIs(t, err, ErrMissing)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestFindUsesKafkaHome(t *testing.T) {
	bin, home := machine(t), t.TempDir()
	command(t, filepath.Join(bin, "jdk", "bin"), "java", java17)
	t.Setenv("JAVA_HOME", filepath.Join(bin, "jdk"))
	t.Setenv("KAFKA_HOME", home)
	command(t, filepath.Join(home, "libs"), "kafka_2.13-4.1.0.jar", "")
	in, err := Find(context.Background())
	require.NoError(t, err)
	require.Equal(t, Install{Java: filepath.Join(bin, "jdk", "bin", "java"), Libs: filepath.Join(home, "libs")}, in)
}

func TestFindFetchesOnce(t *testing.T) {
	bin := machine(t)
	command(t, bin, "java", java17)
	// A Maven that finds the output directory among its arguments, as the real one does, and counts its calls.
	command(t, bin, "mvn", `for a; do case $a in -DoutputDirectory=*) d=${a#*=};; esac; done
/bin/mkdir "$d" && : >"$d/kafka_2.13-4.4.0.jar" && echo called >>`+filepath.Join(bin, "calls"))
	for range 2 {
		in, err := Find(context.Background())
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(in.Libs, "kafka_2.13-4.4.0.jar"))
		left, err := os.ReadDir(filepath.Dir(in.Libs))
		require.NoError(t, err)
		require.Len(t, left, 1, "nothing but the jars is left")
	}
	calls, err := os.ReadFile(filepath.Join(bin, "calls"))
	require.NoError(t, err)
	require.Equal(t, "called\n", string(calls))
}

func TestFindShowsWhatMavenSays(t *testing.T) {
	bin := machine(t)
	command(t, bin, "java", java17)
	command(t, bin, "mvn", "echo could not resolve; exit 1")
	_, err := Find(context.Background())
	require.ErrorContains(t, err, "could not resolve")
	require.NotErrorIs(t, err, ErrMissing)
}
