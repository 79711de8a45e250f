// Package sealed keeps the encrypted files of one build, and as what they are read.
//
// In go files, for what each is used, and what opens them; out comes what a build reads of them, or an error that names the
// file. A build reads by name and does not say what for, so a file that is used in two ways that differ cannot be had: see
// Torn. It holds no keys, and decrypts nothing itself.
package sealed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/flotilla-io/flotilla/sources/build/disclosure"
)

// Errors of files.
var (
	// ErrSealed means that an encrypted file cannot be opened.
	ErrSealed = errors.New("cannot be decrypted")
	// ErrNoKey means that the key for an encrypted file is missing.
	ErrNoKey = errors.New("no key decrypts it")
)

// Opener opens an encrypted file; nil for one that is not encrypted. It ends when what it is for has: its answer does not count
// then.
type Opener func(name string, content []byte) *File

// File is an encrypted file that was opened.
type File struct {
	// Content is what it holds, in its format.
	Content []byte
	// Data is what it holds if it is of no format, and Content only JSON around that;
	// nil for none.
	Data []byte
	// Values are the values that were encrypted.
	Values []string
	// Fault says why it cannot be opened; empty if it can. NoKey says that another key
	// may open it.
	Fault string
	NoKey bool
}

// Files are the encrypted files of one build. Nil ones are read as they are.
type Files struct {
	open Opener

	mu    sync.Mutex
	files map[string]*File // also nil, for those that are not encrypted
	uses  map[string]use
}

// use is for what a file is used.
type use struct {
	copied  bool // a ConfigMap has it as it is
	applied bool // something has what is in it
	bare    bool // of what is in it, Data is wanted
}

// asIs reports whether a file stays as it is. Nothing that is applied does.
func (u use) asIs() bool { return u.copied && !u.applied }

// New returns the encrypted files of a build, which are opened when they are first read; known are opened already. It returns
// nil if both are nil.
func New(open Opener, known map[string]File) *Files {
	if open == nil && known == nil {
		return nil
	}
	f := &Files{open: open, files: map[string]*File{}, uses: map[string]use{}}
	if open == nil {
		f.open = func(string, []byte) *File { return nil }
	}
	for name, file := range known {
		f.files[name] = &file
	}
	return f
}

// All opens all encrypted files, so that a build elsewhere needs no key. Error: that of ctx.
func All(ctx context.Context, open Opener, contents map[string][]byte) (map[string]File, error) {
	out := map[string]File{}
	for name, content := range contents {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if file := open(name, content); file != nil {
			out[name] = *file
		}
	}
	return out, ctx.Err()
}

// Applied notes that a file is a manifest, a patch, or another of which what is in it counts. It is called before the file is
// read for that.
func (f *Files) Applied(name string) {
	if f != nil {
		f.note(name, use{applied: true})
	}
}

// Generates notes for what a generator uses a file: a Secret has under key what the file
// holds, and a ConfigMap has it as it is.
func (f *Files) Generates(name string, secret bool, key string) {
	if f != nil { // .json and .dockerconfigjson take JSON
		f.note(name, use{copied: !secret, applied: secret, bare: secret && !strings.HasSuffix(key, "json")})
	}
}

func (f *Files) note(name string, more use) {
	f.mu.Lock()
	defer f.mu.Unlock()
	is := f.uses[name]
	f.uses[name] = use{copied: is.copied || more.copied, applied: is.applied || more.applied, bare: is.bare || more.bare}
}

// Torn reports whether a file that was read is encrypted, and used both as it is and for what is in it.
func (f *Files) Torn(name string) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.uses[name].copied && f.uses[name].applied && f.files[name] != nil
}

// file returns an encrypted file; nil for one that is none, or stays encrypted.
func (f *Files) file(name string, content []byte) *File {
	if f.uses[name].asIs() {
		return nil
	}
	file, known := f.files[name]
	if !known {
		file = f.open(name, content)
		f.files[name] = file
	}
	return file
}

// Content returns what is to be read of a file.
func (f *Files) Content(name string, content []byte) []byte {
	if f == nil {
		return content
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch file := f.file(name, content); {
	case file == nil || file.Fault != "":
		return content
	case f.uses[name].bare && file.Data != nil:
		return file.Data
	default:
		return file.Content
	}
}

// Fault returns why a file that was read cannot be opened.
func (f *Files) Fault(name string) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	file := f.files[name]
	switch {
	case file == nil || file.Fault == "" || f.uses[name].asIs():
		return nil
	case file.NoKey:
		return fmt.Errorf("%s: %w: %s", name, ErrNoKey, file.Fault)
	default:
		return fmt.Errorf("%s: %w: %s", name, ErrSealed, file.Fault)
	}
}

// Texts returns what was encrypted in the files that were read; nil for nothing.
func (f *Files) Texts() *disclosure.Texts {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var values []string
	for name, file := range f.files {
		if file != nil && !f.uses[name].asIs() {
			values = append(values, file.Values...)
		}
	}
	return disclosure.NewTexts(values)
}
