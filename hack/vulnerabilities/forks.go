package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"golang.org/x/mod/modfile"
)

// fork is a module that a folder of the project stands for. The scanner does not know
// which version that began as, and so sees nothing of it in a program.
type fork struct{ module, version, folder string }

// forksOf are the forks that a go.mod names, each with the version that it requires.
func forksOf(gomod []byte) ([]fork, error) {
	file, err := modfile.Parse("go.mod", gomod, nil)
	if err != nil {
		return nil, err
	}
	var out []fork
	for _, replaced := range file.Replace {
		if replaced.New.Version != "" {
			continue
		}
		version := replaced.Old.Version
		for _, required := range file.Require {
			if version == "" && required.Mod.Path == replaced.Old.Path {
				version = required.Mod.Version
			}
		}
		if version == "" {
			return nil, fmt.Errorf("%s is replaced by %s, and no version of it is required", replaced.Old.Path, replaced.New.Path)
		}
		out = append(out, fork{replaced.Old.Path, version, replaced.New.Path})
	}
	return out, nil
}

// resolve returns what is known of the version that a fork began as, whatever of it the
// fork has changed or left out.
func (o options) resolve(ctx context.Context, f fork) ([]vulnerability, error) {
	output, err := o.scan(ctx, "-mode=query", f.module+"@"+f.version)
	if err != nil {
		return nil, err
	}
	var found []vulnerability
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var m message
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("what the scanner says of %s: %w", f.module, err)
		}
		if m.OSV != nil {
			found = merge(found, []vulnerability{{id: m.OSV.ID, summary: m.OSV.Summary, module: f.module, version: f.version, programs: []string{f.folder}}})
		}
	}
}
