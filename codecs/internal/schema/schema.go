// Package schema turns the .proto files of codecs into Go code with nothing but Go: protocompile reads them, the code
// generator of google.golang.org/protobuf, at the version that go.mod names, writes the code. `go generate ./codecs`
// runs it; a test compares what it would write with what is there.
package schema

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// Generate returns the Go files, by name, of all .proto files in a folder. It writes nothing.
func Generate(ctx context.Context, dir string) (map[string][]byte, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.proto"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("generate from %s: no .proto files: %w", dir, err)
	}
	request := &pluginpb.CodeGeneratorRequest{Parameter: proto.String("paths=source_relative")}
	for _, p := range paths {
		request.FileToGenerate = append(request.FileToGenerate, filepath.Base(p))
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{dir}}),
		SourceInfoMode: protocompile.SourceInfoStandard, // the comments
	}
	files, err := compiler.Compile(ctx, request.FileToGenerate...)
	if err != nil {
		return nil, fmt.Errorf("compile schema in %s: %w", dir, err)
	}
	request.ProtoFile = descriptors(files)
	plugin, err := protogen.Options{}.New(request)
	if err != nil {
		return nil, fmt.Errorf("generate from %s: %w", dir, err)
	}
	plugin.SupportedFeatures = internal_gengo.SupportedFeatures
	for _, f := range plugin.Files {
		if f.Generate {
			internal_gengo.GenerateFile(plugin, f)
		}
	}
	response := plugin.Response()
	if response.Error != nil {
		return nil, fmt.Errorf("generate from %s: %s", dir, response.GetError())
	}
	out := map[string][]byte{}
	for _, f := range response.File {
		out[f.GetName()] = []byte(f.GetContent())
	}
	return out, nil
}

// descriptors returns the files with all they import, imported ones first.
func descriptors(files linker.Files) (all []*descriptorpb.FileDescriptorProto) {
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if slices.ContainsFunc(all, func(d *descriptorpb.FileDescriptorProto) bool { return d.GetName() == f.Path() }) {
			return
		}
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		all = append(all, protoutil.ProtoFromFileDescriptor(f))
	}
	for _, f := range files {
		add(f)
	}
	return all
}

// Write generates the Go files of a folder into it.
func Write(ctx context.Context, dir string) error {
	files, err := Generate(ctx, dir)
	if err != nil {
		return err
	}
	for name, code := range files {
		if err := os.WriteFile(filepath.Join(dir, name), code, 0o644); err != nil {
			return fmt.Errorf("write generated code: %w", err)
		}
	}
	return nil
}
