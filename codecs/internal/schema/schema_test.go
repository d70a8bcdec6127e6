package schema

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const codecs = "../.." // the folder of the schema

func TestGeneratedCodeIsUpToDate(t *testing.T) {
	want, err := Generate(context.Background(), codecs)
	require.NoError(t, err)
	for name, code := range want {
		got, err := os.ReadFile(filepath.Join(codecs, name))
		require.NoError(t, err)
		if string(got) != string(code) {
			t.Errorf("codecs/%s is not what its .proto says: run go generate ./codecs", name)
		}
	}
	there, err := filepath.Glob(filepath.Join(codecs, "*.pb.go"))
	require.NoError(t, err)
	for _, path := range there {
		if _, ok := want[filepath.Base(path)]; !ok {
			t.Errorf("codecs/%s has no .proto: remove it", filepath.Base(path))
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.proto"), []byte(
		"syntax = \"proto3\";\npackage a;\nimport \"google/protobuf/timestamp.proto\";\noption go_package = \"example.org/a;a\";\n"+
			"// A is documented.\nmessage A { google.protobuf.Timestamp at = 1; }\n"), 0o600))
	require.NoError(t, Write(context.Background(), dir))
	code, err := os.ReadFile(filepath.Join(dir, "a.pb.go"))
	require.NoError(t, err)
	require.Contains(t, string(code), "// A is documented.\ntype A struct {")
}

func TestFaultsInASchemaAreReported(t *testing.T) {
	dir := t.TempDir()
	_, err := Generate(context.Background(), dir)
	require.ErrorContains(t, err, "no .proto files")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.proto"), []byte("syntax = \"proto3\";\nmessage A { B b = 1; }\n"), 0o600))
	_, err = Generate(context.Background(), dir)
	require.ErrorContains(t, err, "a.proto:2")
}
