package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// Version2 asks a server for version 2, in the header or the variable that it reads for this. One that does not know it
// answers as before.
const Version2 = "version=2"

// Refs are refs of a remote by their full names.
type Refs struct {
	// At has the object that each points at.
	At map[string]plumbing.Hash
	// Peeled has the objects that annotated tags lead to in the end.
	Peeled map[string]plumbing.Hash
}

// Greeting is what a server says first: what it can do and, before version 2, all its refs.
type Greeting struct {
	// V2 means that the server speaks version 2, and lists refs when asked.
	V2 bool
	// Refs are all of the server's; none with V2.
	Refs Refs

	old *capability.List    // before version 2
	can map[string][]string // with version 2: each ability with its features
}

// Shallow reports whether the server can leave out history.
func (g *Greeting) Shallow() bool {
	if g.V2 {
		return slices.Contains(g.can["fetch"], "shallow")
	}
	return g.old.Supports(capability.Shallow)
}

// Filter reports whether the server can leave out files.
func (g *Greeting) Filter() bool { return g.V2 && slices.Contains(g.can["fetch"], "filter") }

// AnyCommit reports whether the server says that it serves any commit by its hash. With version 2 servers do not say; most
// do, and those that do not refuse.
func (g *Greeting) AnyCommit() bool {
	return g.V2 || g.old.Supports(capability.AllowReachableSHA1InWant)
}

// maxPreamble is how many lines may come before the first that says something.
const maxPreamble = 4

// maxAbilities bounds the lines by which a server says what it can do.
const maxAbilities = 256

// ReadGreeting reads what a server says first, at most limit bytes of it. Errors: ErrSilent, ErrObjectFormat, ErrTooLarge,
// ErrMalformed, a Refusal, or what reading returns.
func ReadGreeting(r io.Reader, limit int64) (*Greeting, error) {
	in := Bound(r, limit, tooManyRefs(limit))
	g, err := readGreeting(bufio.NewReaderSize(in, maxLine))
	return g, in.Cause(err)
}

func tooManyRefs(limit int64) error {
	return fmt.Errorf("list of refs over %d bytes: %w", limit, ErrTooLarge)
}

func readGreeting(in *bufio.Reader) (*Greeting, error) {
	announced := false // by a line that names the service, which ends a message of its own
	for n := range maxPreamble {
		kind, line, size, err := peek(in)
		switch said := chomp(line); {
		case errors.Is(err, io.EOF) && n == 0:
			return nil, ErrSilent
		case err != nil:
			return nil, notRefs(err)
		case said == "version 2":
			if _, err := in.Discard(size); err != nil {
				return nil, err
			}
			return readAbilities(in)
		case kind == flush && announced, strings.HasPrefix(said, "# service="), said == "version 1":
			announced = kind == text && said != "version 1"
			if _, err := in.Discard(size); err != nil {
				return nil, err
			}
		default:
			return readOld(in, line)
		}
	}
	return nil, notRefs(nil)
}

// notRefs returns the error about an answer that has no refs.
func notRefs(err error) error {
	var refused *Refusal
	if errors.As(err, &refused) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return fmt.Errorf("%w: it is no list of refs", ErrMalformed)
}

// readOld reads all refs, as versions 0 and 1 send them; first is the first line.
func readOld(in *bufio.Reader, first []byte) (*Greeting, error) {
	if words, refuses := bytes.CutPrefix(first, []byte("ERR ")); refuses {
		return nil, &Refusal{Words: string(words)}
	}
	if _, can, found := bytes.Cut(first, []byte{0}); found {
		for _, ability := range strings.Fields(string(can)) {
			if format, found := strings.CutPrefix(ability, "object-format="); found {
				if err := checkFormat(format); err != nil {
					return nil, err
				}
			}
		}
	}
	adv := packp.NewAdvRefs()
	err := adv.Decode(in)
	switch {
	case errors.Is(err, packp.ErrEmptyAdvRefs):
		adv = packp.NewAdvRefs()
	case errors.Is(err, packp.ErrEmptyInput):
		return nil, ErrSilent
	case err != nil:
		return nil, notRefs(err)
	}
	refs := Refs{At: adv.References, Peeled: adv.Peeled}
	if adv.Head != nil {
		refs.At["HEAD"] = *adv.Head
	}
	return &Greeting{Refs: refs, old: adv.Capabilities}, nil
}

// readAbilities reads what a server of version 2 can do.
func readAbilities(in *bufio.Reader) (*Greeting, error) {
	g := &Greeting{V2: true, can: map[string][]string{}}
	for range maxAbilities {
		kind, line, err := next(in)
		if err != nil {
			return nil, notRefs(err)
		}
		if kind == flush {
			return g, g.check()
		}
		name, features, _ := strings.Cut(chomp(line), "=")
		g.can[name] = strings.Fields(features)
	}
	return nil, fmt.Errorf("%w: it is no list of abilities", ErrMalformed)
}

func (g *Greeting) check() error {
	_, lists := g.can["ls-refs"]
	_, fetches := g.can["fetch"]
	if !lists || !fetches {
		return fmt.Errorf("%w: it lists no refs, or sends no objects", ErrMalformed)
	}
	if format := g.can["object-format"]; len(format) > 0 {
		return checkFormat(format[0])
	}
	return nil
}

// checkFormat returns an error for repositories that name objects by other hashes than SHA-1.
func checkFormat(format string) error {
	if format == "sha1" {
		return nil
	}
	if format == "sha256" {
		return fmt.Errorf("%w: the repository names its commits by SHA-256, which is not supported yet; use one that was made with git init --object-format=sha1", ErrObjectFormat)
	}
	return fmt.Errorf("%w: the repository names its commits by neither SHA-1 nor SHA-256", ErrObjectFormat)
}
