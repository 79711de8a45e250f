package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/git/wire"
)

// canary stands for what a server says and nobody is to see.
const canary = "CANARY-77ab"

func pkt(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }

var (
	one, two = strings.Repeat("1a", 20), strings.Repeat("2b", 20)
	hash1    = plumbing.NewHash(one)
	hash2    = plumbing.NewHash(two)
	long     = strings.Repeat("3c", 32)
)

// second is what a server of version 2 says first.
func second(abilities ...string) string {
	out := pkt("version 2\n")
	for _, a := range abilities {
		out += pkt(a + "\n")
	}
	return out + "0000"
}

var full = second("agent=git/2.39.5", "ls-refs=unborn", "fetch=shallow wait-for-done filter", "server-option", "object-format=sha1")

func TestGreeting(t *testing.T) {
	type greeting struct {
		V2, Shallow, Filter, Any bool
		Refs                     wire.Refs
	}
	none := wire.Refs{At: map[string]plumbing.Hash{}, Peeled: map[string]plumbing.Hash{}}
	main := wire.Refs{At: map[string]plumbing.Hash{"HEAD": hash1, "refs/heads/main": hash1, "refs/tags/v1": hash2}, Peeled: map[string]plumbing.Hash{"refs/tags/v1": hash1}}
	old := pkt(one+" HEAD\x00shallow ofs-delta object-format=sha1\n") + pkt(one+" refs/heads/main\n") + pkt(two+" refs/tags/v1\n") + pkt(one+" refs/tags/v1^{}\n") + "0000"
	cases := map[string]struct {
		said string
		want greeting
		err  error
	}{
		"version 2": {said: full, want: greeting{V2: true, Shallow: true, Filter: true, Any: true}},
		"version 2 after the name of the service":  {said: pkt("# service=git-upload-pack\n") + "0000" + full, want: greeting{V2: true, Shallow: true, Filter: true, Any: true}},
		"version 2 without features":               {said: second("ls-refs", "fetch"), want: greeting{V2: true, Any: true}},
		"version 0":                                {said: old, want: greeting{Shallow: true, Refs: main}},
		"version 0 after the name of the service":  {said: pkt("# service=git-upload-pack\n") + "0000" + old, want: greeting{Shallow: true, Refs: main}},
		"version 1":                                {said: pkt("version 1\n") + old, want: greeting{Shallow: true, Refs: main}},
		"an empty repository":                      {said: "0000", want: greeting{Refs: none}},
		"an empty repository of version 1":         {said: pkt("version 1\n") + "0000", want: greeting{Refs: none}},
		"an empty repository behind a service":     {said: pkt("# service=git-upload-pack\n") + "00000000", want: greeting{Refs: none}},
		"nothing":                                  {err: wire.ErrSilent},
		"half a line":                              {said: "00", err: io.ErrUnexpectedEOF},
		"a page":                                   {said: "<html>" + canary, err: wire.ErrMalformed},
		"a line longer than any":                   {said: "fff5" + canary, err: wire.ErrMalformed},
		"abilities without an end":                 {said: strings.TrimSuffix(full, "0000"), err: wire.ErrMalformed},
		"endless abilities":                        {said: pkt("version 2\n") + strings.Repeat(pkt("x\n"), 1000), err: wire.ErrMalformed},
		"version 2 that lists no refs":             {said: second("fetch"), err: wire.ErrMalformed},
		"endless services":                         {said: strings.Repeat(pkt("# service=x\n"), 100), err: wire.ErrMalformed},
		"SHA-256, version 2":                       {said: second("ls-refs", "fetch", "object-format=sha256"), err: wire.ErrObjectFormat},
		"SHA-256, version 0":                       {said: pkt(long+" HEAD\x00shallow object-format=sha256\n") + "0000", err: wire.ErrObjectFormat},
		"SHA-256, empty":                           {said: pkt(strings.Repeat("0", 64)+" capabilities^{}\x00object-format=sha256\n") + "0000", err: wire.ErrObjectFormat},
		"another format":                           {said: second("ls-refs", "fetch", "object-format="+canary), err: wire.ErrObjectFormat},
		"more than the limit":                      {said: old + strings.Repeat("x", 5000), want: greeting{Shallow: true, Refs: main}},
		"more refs than the limit":                 {said: pkt(one+" HEAD\x00shallow\n") + strings.Repeat(pkt(one+" refs/heads/x\n"), 1000), err: wire.ErrTooLarge},
		"a service and nothing else":               {said: pkt("# service=git-upload-pack\n"), err: wire.ErrMalformed},
		"an error after the name of its service":   {said: pkt("# service=git-upload-pack\n") + "0000" + pkt("ERR "+canary), err: &wire.Refusal{Words: canary}},
		"an error":                                 {said: pkt("ERR " + canary), err: &wire.Refusal{Words: canary}},
		"an error in the midst of the abilities":   {said: pkt("version 2\n") + pkt("ERR "+canary), err: &wire.Refusal{Words: canary}},
		"an ability that is a list of other lists": {said: second("ls-refs=a=b", "fetch=shallow=1 filter"), want: greeting{V2: true, Filter: true, Any: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, err := wire.ReadGreeting(iotest.OneByteReader(strings.NewReader(tc.said)), 4<<10)
			checkError(t, err, tc.err)
			if err != nil {
				return
			}
			got := greeting{V2: g.V2, Shallow: g.Shallow(), Filter: g.Filter(), Any: g.AnyCommit(), Refs: g.Refs}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("greeting (-want +got):\n%s", diff)
			}
		})
	}
}

// checkError compares an error with the wanted one, and looks for what a server said in it.
func checkError(t *testing.T, err, want error) {
	t.Helper()
	var got, refusal *wire.Refusal
	if errors.As(want, &refusal) {
		if !errors.As(err, &got) || got.Words != refusal.Words {
			t.Errorf("error = %#v, want a refusal with the words %q", err, refusal.Words)
		}
	} else if !errors.Is(err, want) {
		t.Errorf("error = %v, want %v", err, want)
	}
	if err != nil && strings.Contains(err.Error(), canary) {
		t.Errorf("error shows what the server said: %v", err)
	}
}

func greet(t testing.TB, said string) *wire.Greeting {
	t.Helper()
	g, err := wire.ReadGreeting(strings.NewReader(said), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestRequests(t *testing.T) {
	can, bare := greet(t, full), greet(t, second("ls-refs", "fetch"))
	for name, tc := range map[string]struct {
		write func(io.Writer) error
		want  string
	}{
		"a list": {
			write: func(w io.Writer) error { return can.EncodeList(w, "refs/heads/main", "HEAD") },
			want:  pkt("command=ls-refs\n") + pkt("agent=git/flotilla\n") + pkt("object-format=sha1\n") + "0001" + pkt("peel\n") + pkt("ref-prefix refs/heads/main\n") + pkt("ref-prefix HEAD\n") + "0000",
		},
		"a commit without history and files": {
			write: func(w io.Writer) error {
				return can.EncodeFetch(w, wire.Wanted{Objects: []plumbing.Hash{hash1, hash2}, Shallow: true, NoFiles: true})
			},
			want: pkt("command=fetch\n") + pkt("agent=git/flotilla\n") + pkt("object-format=sha1\n") + "0001" + pkt("no-progress\n") + pkt("ofs-delta\n") +
				pkt("want "+one+"\n") + pkt("want "+two+"\n") + pkt("deepen 1\n") + pkt("filter blob:none\n") + pkt("done\n") + "0000",
		},
		"what two trees do not have": {
			write: func(w io.Writer) error {
				return bare.EncodeFetch(w, wire.Wanted{Objects: []plumbing.Hash{hash1}, Shallow: true, There: []plumbing.Hash{hash2, hash1}})
			},
			want: pkt("command=fetch\n") + "0001" + pkt("no-progress\n") + pkt("ofs-delta\n") + pkt("want "+one+"\n") + pkt("thin-pack\n") +
				pkt("shallow "+two+"\n") + pkt("shallow "+one+"\n") + pkt("deepen 1\n") + pkt("have "+two+"\n") + pkt("have "+one+"\n") + pkt("done\n") + "0000",
		},
		"all history from a server that can do little": {
			write: func(w io.Writer) error { return bare.EncodeFetch(w, wire.Wanted{Objects: []plumbing.Hash{hash1}}) },
			want:  pkt("command=fetch\n") + "0001" + pkt("no-progress\n") + pkt("ofs-delta\n") + pkt("want "+one+"\n") + pkt("done\n") + "0000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := tc.write(&out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
	if err := can.EncodeList(io.Discard, strings.Repeat("x", 70_000)); err == nil {
		t.Error("a ref longer than a line was requested")
	}
}

func TestList(t *testing.T) {
	for name, tc := range map[string]struct {
		said string
		want wire.Refs
		err  error
	}{
		"none": {said: "0000", want: wire.Refs{At: map[string]plumbing.Hash{}, Peeled: map[string]plumbing.Hash{}}},
		"a branch, a tag and HEAD": {
			said: pkt(one+" HEAD symref-target:refs/heads/main\n") + pkt(one+" refs/heads/main\n") + pkt(two+" refs/tags/v1 peeled:"+one+"\n") + "0000",
			want: wire.Refs{At: map[string]plumbing.Hash{"HEAD": hash1, "refs/heads/main": hash1, "refs/tags/v1": hash2}, Peeled: map[string]plumbing.Hash{"refs/tags/v1": hash1}},
		},
		"HEAD of an empty repository": {said: pkt("unborn HEAD symref-target:refs/heads/main\n") + "0000", want: wire.Refs{At: map[string]plumbing.Hash{}, Peeled: map[string]plumbing.Hash{}}},
		"no end":                      {said: pkt(one + " refs/heads/main\n"), err: io.ErrUnexpectedEOF},
		"nothing":                     {err: io.ErrUnexpectedEOF},
		"an error":                    {said: pkt("ERR " + canary), err: &wire.Refusal{Words: canary}},
		"no hash":                     {said: pkt(canary + " refs/heads/main\n"), err: wire.ErrMalformed},
		"a longer hash":               {said: pkt(long + " refs/heads/main\n"), err: wire.ErrMalformed},
		"no name":                     {said: pkt(one + "\n"), err: wire.ErrMalformed},
		"a tag that leads to nothing": {said: pkt(one + " refs/tags/v1 peeled:" + canary + "\n"), err: wire.ErrMalformed},
		"more than the limit":         {said: strings.Repeat(pkt(one+" refs/heads/main\n"), 1000), err: wire.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := wire.ReadList(iotest.OneByteReader(strings.NewReader(tc.said)), 4<<10)
			checkError(t, err, tc.err)
			if diff := cmp.Diff(tc.want, got); err == nil && diff != "" {
				t.Errorf("refs (-want +got):\n%s", diff)
			}
		})
	}
	if some, err := wire.ReadList(strings.NewReader(strings.Repeat(pkt(one+" refs/heads/main\n"), 1000)), 4<<10); err == nil || len(some.At) != 1 {
		t.Errorf("up to the limit %v was read, and %v returned", some, err)
	}
}

func TestFetch(t *testing.T) {
	g := greet(t, full)
	shallow := pkt("shallow-info\n") + pkt("shallow "+one+"\n") + "0001"
	for name, tc := range map[string]struct {
		said, want string
		err        error
	}{
		"a pack":                           {said: pkt("packfile\n") + pkt("\x01PA") + pkt("\x02counting") + pkt("\x01CK") + "0000", want: "PACK"},
		"a pack after other sections":      {said: pkt("acknowledgments\n") + pkt("ready\n") + "0001" + shallow + pkt("packfile\n") + pkt("\x01PACK") + "0000", want: "PACK"},
		"a line that is called as the end": {said: pkt("shallow-info\n") + pkt("packfile\n") + "0001" + pkt("packfile\n") + pkt("\x01PACK") + "0000", want: "PACK"},
		"no section of a pack":             {said: shallow + "0000", err: wire.ErrMalformed},
		"half a section":                   {said: shallow, err: wire.ErrMalformed},
		"half a pack":                      {said: pkt("packfile\n") + pkt("\x01PA"), want: "PA", err: io.ErrUnexpectedEOF},
		"nothing":                          {err: wire.ErrMalformed},
		"an unknown band":                  {said: pkt("packfile\n") + pkt("\x07"+canary) + "0000", err: wire.ErrMalformed},
		"an empty band":                    {said: pkt("packfile\n") + "0004" + "0000", err: wire.ErrMalformed},
		"an error instead":                 {said: pkt("ERR " + canary), err: &wire.Refusal{Words: canary}},
		"an error in the midst":            {said: pkt("packfile\n") + pkt("\x01PA") + pkt("\x03"+canary), want: "PA", err: &wire.Refusal{Words: canary}},
	} {
		t.Run(name, func(t *testing.T) {
			stream, err := g.ReadFetch(iotest.OneByteReader(strings.NewReader(tc.said)), wire.Wanted{Objects: []plumbing.Hash{hash1}})
			var got []byte
			if err == nil {
				got, err = io.ReadAll(stream)
			}
			checkError(t, err, tc.err)
			if string(got) != tc.want {
				t.Errorf("pack = %q, want %q", got, tc.want)
			}
		})
	}
}

// TestExcerpt checks that a text of a repository is one line of bounded length.
func TestExcerpt(t *testing.T) {
	if got := wire.Excerpt("a\nb\x1b[31m" + strings.Repeat("x", 1000)); strings.ContainsAny(got, "\n\x1b") || len(got) > 300 {
		t.Errorf("Excerpt = %q", got)
	}
}

// FuzzGreeting passes arbitrary bytes to the reader of what servers say first.
func FuzzGreeting(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("001e# service=git-upload-pack\n0000"))
	f.Add([]byte(pkt(one+" HEAD\x00shallow\n") + "0000"))
	f.Fuzz(func(_ *testing.T, said []byte) {
		g, err := wire.ReadGreeting(bytes.NewReader(said), 1<<16)
		if err == nil {
			_, _, _ = g.Shallow(), g.Filter(), g.AnyCommit()
			_ = g.EncodeFetch(io.Discard, wire.Wanted{Objects: []plumbing.Hash{hash1}, Shallow: g.Shallow()})
		}
	})
}

// FuzzList passes arbitrary bytes to the reader of lists of refs.
func FuzzList(f *testing.F) {
	f.Add([]byte(pkt(two+" refs/tags/v1 peeled:"+one+"\n") + "0000"))
	f.Fuzz(func(t *testing.T, said []byte) {
		refs, err := wire.ReadList(bytes.NewReader(said), 1<<16)
		for name := range refs.Peeled {
			if _, found := refs.At[name]; err == nil && !found {
				t.Errorf("%q is peeled and is not there", name)
			}
		}
	})
}

// FuzzFetch passes arbitrary bytes to the reader of transfers.
func FuzzFetch(f *testing.F) {
	f.Add([]byte(pkt("packfile\n") + pkt("\x01PACK") + pkt("\x02x") + "0000"))
	f.Add([]byte(pkt("shallow-info\n") + "0001"))
	f.Fuzz(func(t *testing.T, said []byte) {
		for _, first := range []string{full, pkt(one+" HEAD\x00side-band-64k\n") + "0000"} {
			stream, err := greet(t, first).ReadFetch(bytes.NewReader(said), wire.Wanted{Objects: []plumbing.Hash{hash1}, Shallow: true})
			if err == nil {
				_, _ = io.Copy(io.Discard, stream)
			}
		}
	})
}
