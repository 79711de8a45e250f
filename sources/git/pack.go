package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// errPack means that a transfer is damaged. Details are not shown.
var errPack = fmt.Errorf("%w: the transfer is damaged", ErrMalformed)

// decodeRefs reads a list of refs of at most limit bytes.
func decodeRefs(r io.Reader, limit int64) (*packp.AdvRefs, error) {
	bounded := &boundedReader{r: r, left: limit, err: fmt.Errorf("list of refs over %d bytes: %w", limit, ErrTooLarge)}
	adv := packp.NewAdvRefs()
	err := adv.Decode(bounded)
	var remote *pktline.ErrorLine
	switch {
	case bounded.hit:
		return nil, bounded.err
	case err == nil || errors.Is(err, packp.ErrEmptyAdvRefs) || errors.Is(err, packp.ErrEmptyInput):
		return adv, err
	case errors.As(err, &remote):
		return nil, classify(remote.Text)
	case bounded.fault != nil:
		return nil, bounded.fault
	default:
		return nil, fmt.Errorf("%w: it is no list of refs", ErrMalformed)
	}
}

// boundedReader fails once more than its limit is read, and records faults of the
// reader below, since decoders above turn them into text.
type boundedReader struct {
	r     io.Reader
	left  int64
	err   error // what to return at the limit
	hit   bool
	fault error
}

// Read implements io.Reader, up to the limit.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.hit = true
		return 0, b.err
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.fault = err
	}
	return n, err
}

// pack is a transferred set of objects in an unlinked file: the system frees it
// when it is closed, also when this process is killed.
type pack struct {
	file    billy.File
	objects *packfile.Packfile
}

func (p *pack) close() { _ = p.file.Close() }

// transfer requests the wanted commits and receives their objects. shallow
// requests no history.
func (r *Remote) transfer(ctx context.Context, conn connection, can *capability.List, want []plumbing.Hash, shallow bool) (*pack, error) {
	req := packp.NewUploadPackRequest()
	req.Wants = want
	if shallow {
		req.Depth = packp.DepthCommits(1)
		if err := req.Capabilities.Set(capability.Shallow); err != nil {
			return nil, err
		}
	}
	for _, c := range []capability.Capability{capability.OFSDelta, capability.Sideband64k, capability.NoProgress} {
		if can.Supports(c) {
			if err := req.Capabilities.Set(c); err != nil {
				return nil, err
			}
		}
	}
	body, err := conn.exchange(ctx, func(w io.Writer) error { return encodeUpload(w, req) })
	if err != nil {
		return nil, err
	}
	defer body.Close()
	bounded := &boundedReader{r: body, left: r.opts.Limits.Pack, err: fmt.Errorf("transfer over %d bytes: %w", r.opts.Limits.Pack, ErrTooLarge)}
	p, err := r.receive(req, bounded)
	// Decoders turn faults of the reader into text, so those of the reader come
	// first.
	switch {
	case err == nil:
		return p, nil
	case bounded.hit:
		return nil, bounded.err
	case bounded.fault != nil:
		return nil, bounded.fault
	default:
		return nil, err
	}
}

func encodeUpload(w io.Writer, req *packp.UploadPackRequest) error {
	if err := req.UploadRequest.Encode(w); err != nil {
		return err
	}
	return pktline.NewEncoder(w).EncodeString("done\n")
}

func (r *Remote) receive(req *packp.UploadPackRequest, from io.Reader) (*pack, error) {
	resp := packp.NewUploadPackResponse(req)
	if err := resp.Decode(io.NopCloser(from)); err != nil {
		return nil, classify(err.Error())
	}
	var stream io.Reader = resp
	if req.Capabilities.Supports(capability.Sideband64k) {
		stream = sideband.NewDemuxer(sideband.Sideband64k, resp)
	}
	file, err := spool(r.opts.TempDir)
	if err != nil {
		return nil, fmt.Errorf("spool transfer: %w", err)
	}
	p := &pack{file: file}
	if err := p.fill(stream, r.opts.Limits); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// spool creates a file in a new folder and unlinks both; only the open file
// remains.
func spool(in string) (billy.File, error) {
	dir, err := os.MkdirTemp(in, "flotilla-fetch-")
	if err != nil {
		return nil, err
	}
	file, err := osfs.New(dir, osfs.WithBoundOS()).Create("objects.pack")
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		if file != nil {
			_ = file.Close()
		}
		return nil, err
	}
	return file, nil
}

// fill spools the stream while measuring it, and then indexes it.
func (p *pack) fill(stream io.Reader, limits Limits) error {
	out := bufio.NewWriterSize(p.file, 64<<10)
	if err := measure(io.TeeReader(stream, out), limits); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("spool transfer: %w", err)
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("spool transfer: %w", err)
	}
	index := new(idxfile.Writer)
	parser, err := packfile.NewParser(packfile.NewScanner(p.file), index)
	if err != nil {
		return err
	}
	if _, err := parser.Parse(); err != nil {
		return errPack
	}
	idx, err := index.Index()
	if err != nil {
		return errPack
	}
	p.objects = packfile.NewPackfileWithCache(idx, nil, p.file, cache.NewObjectLRU(objectCache), 0)
	return nil
}

// objectCache is how many bytes of unpacked objects are cached while reading.
const objectCache = 16 << 20

// measure reads a pack and returns an error if it would unpack to more than the
// limits. It runs before anything unpacks the objects into memory.
func measure(r io.Reader, limits Limits) error {
	scanner := packfile.NewScanner(r)
	_, count, err := scanner.Header()
	if err != nil {
		return errPack
	}
	if int64(count) > int64(limits.Objects) {
		return fmt.Errorf("transfer of %d objects, %d are allowed: %w", count, limits.Objects, ErrTooLarge)
	}
	var total int64
	for range count {
		size, err := measureObject(scanner, limits.Object)
		if err != nil {
			return err
		}
		if total += size; total > limits.Unpacked {
			return fmt.Errorf("transfer unpacks to over %d bytes: %w", limits.Unpacked, ErrTooLarge)
		}
	}
	if _, err := scanner.Checksum(); err != nil && !errors.Is(err, io.EOF) {
		return errPack
	}
	// What follows the checksum is not part of the pack; reading on lets the
	// sender finish.
	_, err = io.Copy(io.Discard, r)
	return err
}

// measureObject returns the size of the next object once unpacked, for a delta
// with the size of the delta itself. limit is in bytes.
func measureObject(scanner *packfile.Scanner, limit int64) (int64, error) {
	header, err := scanner.NextObjectHeader()
	if err != nil {
		return 0, errPack
	}
	if header.Length > limit {
		return 0, fmt.Errorf("an object of %d bytes, %d are allowed: %w", header.Length, limit, ErrTooLarge)
	}
	var head firstDelta
	sink := io.Discard
	if header.Type.IsDelta() {
		sink = &head
	}
	if _, _, err := scanner.NextObject(sink); err != nil {
		return 0, errPack
	}
	if !header.Type.IsDelta() {
		return header.Length, nil
	}
	size, err := head.target()
	if err != nil {
		return 0, err
	}
	if size > limit {
		return 0, fmt.Errorf("an object of %d bytes, %d are allowed: %w", size, limit, ErrTooLarge)
	}
	return size + header.Length, nil
}

// firstDelta keeps the beginning of a delta, which has its sizes.
type firstDelta struct{ head []byte }

// deltaHead is how many bytes the two sizes can take.
const deltaHead = 20

// Write keeps the first bytes and discards the rest.
func (d *firstDelta) Write(p []byte) (int, error) {
	if room := deltaHead - len(d.head); room > 0 {
		d.head = append(d.head, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// target returns the size of the object that the delta produces.
func (d *firstDelta) target() (int64, error) {
	rest := d.head
	var size int64
	for range 2 { // the base's size, then the target's
		size = 0
		for shift := 0; ; shift += 7 {
			if len(rest) == 0 || shift > 56 {
				return 0, errPack
			}
			b := rest[0]
			rest = rest[1:]
			size |= int64(b&0x7f) << shift
			if b&0x80 == 0 {
				break
			}
		}
	}
	return size, nil
}
