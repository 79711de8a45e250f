// Command protos writes the Go code of .proto files beside them. It needs no protoc: it
// compiles them itself, and runs the plugins that its go.mod names.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// plugins are those that make code.
var plugins = []string{"protoc-gen-go", "protoc-gen-go-grpc"}

func main() {
	root := flag.String("root", ".", "the directory that the names of files, and of what they import, begin at")
	flag.Parse()
	if err := run(context.Background(), *root, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run makes the code of the named files: those that import others after these.
func run(ctx context.Context, root string, names []string) error {
	files, err := compile(ctx, root, names)
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	request := &pluginpb.CodeGeneratorRequest{
		Parameter: proto.String("paths=source_relative"), FileToGenerate: names, ProtoFile: files,
	}
	for _, plugin := range plugins {
		if err := generate(ctx, plugin, request, root); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

// compile describes files.
func compile(ctx context.Context, root string, names []string) ([]*descriptorpb.FileDescriptorProto, error) {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{root}},
		SourceInfoMode: protocompile.SourceInfoStandard, // the comments
	}
	files, err := compiler.Compile(ctx, names...)
	if err != nil {
		return nil, err
	}
	var out []*descriptorpb.FileDescriptorProto
	for _, file := range files {
		out = append(out, protoutil.ProtoFromFileDescriptor(file))
	}
	return out, nil
}

// generate runs one plugin, and writes what it answers.
func generate(ctx context.Context, plugin string, request *pluginpb.CodeGeneratorRequest, root string) error {
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		return err
	}
	var made pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(answer, &made); err != nil {
		return err
	}
	if made.Error != nil {
		return errors.New(*made.Error)
	}
	for _, file := range made.File {
		dir, base := filepath.Split(filepath.Join(root, file.GetName()))
		if err := os.WriteFile(filepath.Join(dir, "zz_generated."+base), []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
