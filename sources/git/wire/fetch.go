package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// Wanted are the objects that a server is to send, with all that they refer to.
type Wanted struct {
	Objects []plumbing.Hash
	// Shallow leaves out the history of commits.
	Shallow bool
	// NoFiles leaves out the content of files, unless it is among Objects. It needs Greeting.Filter.
	NoFiles bool
	// NoTrees leaves out trees as well. It needs Greeting.Filter.
	NoTrees bool
	// Depth leaves out the history beyond this many generations; zero for none. It needs version 2.
	Depth int
	// Have leaves out what is in the history of this commit; zero for none. It needs version 2.
	Have plumbing.Hash
	// There leaves out what the trees of these commits have, whose history is not there; objects may be deltas of it. It
	// needs version 2, and Shallow.
	There []plumbing.Hash
}

// EncodeFetch writes the request for the wanted objects.
func (g *Greeting) EncodeFetch(w io.Writer, want Wanted) error {
	if !g.V2 {
		return encodeOld(w, g.oldRequest(want))
	}
	out := &lines{w: w}
	g.command(out, "fetch")
	out.text("no-progress")
	out.text("ofs-delta")
	for _, hash := range want.Objects {
		out.text("want " + hash.String())
	}
	if len(want.There) > 0 {
		out.text("thin-pack")
	}
	for _, hash := range want.There {
		out.text("shallow " + hash.String())
	}
	if want.Shallow {
		out.text("deepen 1")
	}
	if want.Depth > 0 {
		out.text(fmt.Sprintf("deepen %d", want.Depth))
	}
	for _, hash := range want.There {
		out.text("have " + hash.String())
	}
	if !want.Have.IsZero() {
		out.text("have " + want.Have.String())
	}
	if want.NoFiles {
		out.text("filter blob:none")
	}
	if want.NoTrees {
		out.text("filter tree:0")
	}
	out.text("done")
	out.mark(flush)
	return out.err
}

// ReadFetch returns the stream of the pack in the answer to a request. It is to be read to its end. Errors: ErrMalformed, a
// Refusal, or what reading returns.
func (g *Greeting) ReadFetch(r io.Reader, want Wanted) (io.Reader, error) {
	if !g.V2 {
		return readOldFetch(r, g.oldRequest(want))
	}
	in := bufio.NewReaderSize(r, maxLine)
	section := "" // the name of the section that is being read
	for {
		kind, line, err := next(in)
		var refused *Refusal
		switch {
		case errors.As(err, &refused), errors.Is(err, ErrMalformed):
			return nil, err
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("%w: it ends before the transfer", ErrMalformed)
		case err != nil:
			return nil, err
		case kind == flush:
			return nil, fmt.Errorf("%w: there is no transfer in it", ErrMalformed)
		case kind == delim:
			section = ""
		case section == "":
			if section = chomp(line); section == "packfile" {
				return &bands{in: in}, nil
			}
		}
	}
}

// bands reads the first of the bands that lines are sent in: the pack.
type bands struct {
	in   *bufio.Reader
	rest []byte // of the line that is being read; it is the reader's own
	err  error
}

// Bands of a transfer.
const (
	bandPack     = 1
	bandProgress = 2
	bandError    = 3
)

// Read implements io.Reader; it returns io.EOF at the end of the message only.
func (b *bands) Read(p []byte) (int, error) {
	for len(b.rest) == 0 && b.err == nil {
		b.rest, b.err = b.line()
	}
	if len(b.rest) == 0 {
		return 0, b.err
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *bands) line() ([]byte, error) {
	kind, line, size, err := peek(b.in)
	switch {
	case errors.Is(err, io.EOF):
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	}
	// Taking a line moves nothing in the buffer; only the next read does.
	if _, err := b.in.Discard(size); err != nil {
		return nil, err
	}
	switch {
	case kind == flush:
		return nil, io.EOF
	case kind == delim || len(line) == 0:
		return nil, fmt.Errorf("%w: no band of a transfer", ErrMalformed)
	case line[0] == bandPack:
		return line[1:], nil
	case line[0] == bandProgress:
		return nil, nil
	case line[0] == bandError:
		return nil, &Refusal{Words: string(line[1:])}
	default:
		return nil, fmt.Errorf("%w: no band of a transfer", ErrMalformed)
	}
}

// oldRequest returns the request of version 0.
func (g *Greeting) oldRequest(want Wanted) *packp.UploadPackRequest {
	req := packp.NewUploadPackRequest()
	req.Wants = want.Objects
	set := func(c capability.Capability) { _ = req.Capabilities.Set(c) } // fails for those that need a value only
	if want.Shallow {
		req.Depth = packp.DepthCommits(1)
		set(capability.Shallow)
	}
	for _, c := range []capability.Capability{capability.OFSDelta, capability.Sideband64k, capability.NoProgress} {
		if g.old.Supports(c) {
			set(c)
		}
	}
	return req
}

func encodeOld(w io.Writer, req *packp.UploadPackRequest) error {
	if err := req.UploadRequest.Encode(w); err != nil {
		return err
	}
	return pktline.NewEncoder(w).EncodeString("done\n")
}

func readOldFetch(r io.Reader, req *packp.UploadPackRequest) (io.Reader, error) {
	resp := packp.NewUploadPackResponse(req)
	if err := resp.Decode(io.NopCloser(r)); err != nil {
		return nil, &Refusal{Words: err.Error()}
	}
	if req.Capabilities.Supports(capability.Sideband64k) {
		return sideband.NewDemuxer(sideband.Sideband64k, resp), nil
	}
	return resp, nil
}
