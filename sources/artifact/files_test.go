package artifact_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/artifact"
)

func pack(t testing.TB, files artifact.Files) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := files.Pack(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// tarball returns a compressed archive with raw headers; each body is as long as
// its header states.
func tarball(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, e := range entries {
		if e.Typeflag == 0 {
			e.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(&e); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, e.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestPackAndExtract(t *testing.T) {
	random := make([]byte, 100_000)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	files := artifact.Files{
		"a.yaml":                          {Data: []byte("a: 1\n")},
		"run.sh":                          {Data: []byte("#!/bin/sh\n"), Executable: true},
		"deep/er/b.yaml":                  {Data: random},
		"empty":                           {},
		strings.Repeat("long/", 40) + "x": {Data: []byte("x")},
		"ünï/cödé.yaml":                   {Data: []byte("u")},
	}
	packed := pack(t, files)
	if !bytes.Equal(packed, pack(t, files)) {
		t.Error("the same files were packed differently")
	}
	got, err := artifact.Extract(bytes.NewReader(packed), artifact.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range got {
		if len(f.Data) == 0 {
			got[name] = artifact.File{Executable: f.Executable}
		}
	}
	if diff := cmp.Diff(files, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestExtractRefuses(t *testing.T) {
	many := make([]tar.Header, 30)
	dirs := make([]tar.Header, 30)
	for i := range many {
		many[i] = tar.Header{Name: fmt.Sprintf("f%d", i)}
		dirs[i] = tar.Header{Name: fmt.Sprintf("d%d/", i), Typeflag: tar.TypeDir}
	}
	whole := tarball(t, tar.Header{Name: "a", Size: 100})
	cases := map[string]struct {
		packed  []byte
		limits  artifact.Limits
		wantErr error
	}{
		"nothing":                       {packed: nil, wantErr: artifact.ErrMalformed},
		"what is not gzip":              {packed: []byte("PK\x03\x04 a zip file"), wantErr: artifact.ErrMalformed},
		"half an archive":               {packed: whole[:len(whole)-20], wantErr: artifact.ErrMalformed},
		"a name that leads up":          {packed: tarball(t, tar.Header{Name: "../a"}), wantErr: artifact.ErrMalformed},
		"a name that leads up and down": {packed: tarball(t, tar.Header{Name: "a/../b"}), wantErr: artifact.ErrMalformed},
		"an absolute name":              {packed: tarball(t, tar.Header{Name: "/etc/passwd"}), wantErr: artifact.ErrMalformed},
		"a drive":                       {packed: tarball(t, tar.Header{Name: "C:/a"}), wantErr: artifact.ErrMalformed},
		"a backslash":                   {packed: tarball(t, tar.Header{Name: `a\..\b`}), wantErr: artifact.ErrMalformed},
		"a line break in a name":        {packed: tarball(t, tar.Header{Name: "a\nb"}), wantErr: artifact.ErrMalformed},
		"a name that reads backwards":   {packed: tarball(t, tar.Header{Name: "a\u202egpj.yaml"}), wantErr: artifact.ErrMalformed},
		"a name of 300 letters":         {packed: tarball(t, tar.Header{Name: strings.Repeat("x", 300)}), wantErr: artifact.ErrMalformed},
		"the same name twice":           {packed: tarball(t, tar.Header{Name: "a"}, tar.Header{Name: "./a"}), wantErr: artifact.ErrMalformed},
		"a symbolic link":               {packed: tarball(t, tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc"}), wantErr: artifact.ErrMalformed},
		"a hard link":                   {packed: tarball(t, tar.Header{Name: "a", Typeflag: tar.TypeLink, Linkname: "../x"}), wantErr: artifact.ErrMalformed},
		"a device":                      {packed: tarball(t, tar.Header{Name: "a", Typeflag: tar.TypeChar}), wantErr: artifact.ErrMalformed},
		"a pipe":                        {packed: tarball(t, tar.Header{Name: "a", Typeflag: tar.TypeFifo}), wantErr: artifact.ErrMalformed},
		"too many files":                {packed: tarball(t, many...), limits: artifact.Limits{Files: 20}, wantErr: artifact.ErrTooLarge},
		"too many directories":          {packed: tarball(t, dirs...), limits: artifact.Limits{Files: 10}, wantErr: artifact.ErrTooLarge},
		"too many bytes":                {packed: tarball(t, tar.Header{Name: "a", Size: 60}, tar.Header{Name: "b", Size: 60}), limits: artifact.Limits{Unpacked: 100}, wantErr: artifact.ErrTooLarge},
		"a sparse file":                 {packed: raw(t, records(t, "GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=a", "GNU.sparse.realsize=1099511627776"), file(t, "a", "1\n0\n512\n"+strings.Repeat("\x00", 1017))), wantErr: artifact.ErrMalformed},
		"a sparse file of long ago":     {packed: raw(t, typed(file(t, "a", ""), tar.TypeGNUSparse)), wantErr: artifact.ErrMalformed},
		"records without an end":        {packed: raw(t, records(t, "comment="+strings.Repeat("x", 2<<20)), file(t, "a", "x")), wantErr: artifact.ErrMalformed},
		"an archive in an archive":      {packed: zipped(t, whole), wantErr: artifact.ErrMalformed},
		"an archive behind its end":     {packed: raw(t, file(t, "a", "x"), make([]byte, 1024), file(t, "b", "y")), wantErr: artifact.ErrMalformed},
		"bytes behind the archive":      {packed: append(slices.Clone(whole), "more"...), wantErr: artifact.ErrMalformed},
		"zeros without an end":          {packed: raw(t, file(t, "a", "x"), make([]byte, 2<<20)), wantErr: artifact.ErrMalformed},
		"a checksum that is another":    {packed: append(slices.Clone(whole[:len(whole)-8]), "checksum"...), wantErr: artifact.ErrMalformed},
		"a bomb":                        {packed: tarball(t, tar.Header{Name: "a", Size: 40 << 20}), wantErr: artifact.ErrTooLarge},
		"a bomb of many files":          {packed: tarball(t, tar.Header{Name: "a", Size: 8 << 20}, tar.Header{Name: "b", Size: 8 << 20}), wantErr: artifact.ErrTooLarge},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files, err := artifact.Extract(bytes.NewReader(tc.packed), tc.limits)
			if !errors.Is(err, tc.wantErr) || files != nil {
				t.Errorf("Extract = %d files, %v; want %v", len(files), err, tc.wantErr)
			}
		})
	}
}

// TestPadding: programs fill the last block of an archive with zeros, or end it with none.
func TestPadding(t *testing.T) {
	for _, zeros := range []int{0, 1024, 10 << 10} {
		files, err := artifact.Extract(bytes.NewReader(raw(t, file(t, "a", "x"), make([]byte, zeros))), artifact.Limits{})
		if diff := cmp.Diff(artifact.Files{"a": {Data: []byte("x")}}, files); err != nil || diff != "" {
			t.Errorf("with %d zeros: %v (-want +got):\n%s", zeros, err, diff)
		}
	}
}

// raw compresses blocks of an archive, of which there may be such as no library writes.
func raw(t testing.TB, blocks ...[]byte) []byte {
	t.Helper()
	return zipped(t, bytes.Join(blocks, nil))
}

func zipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if _, err := zip.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// file returns the blocks of a file.
func file(t testing.TB, name, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// records returns the blocks with extended records of the file that follows.
func records(t testing.TB, texts ...string) []byte {
	t.Helper()
	content := ""
	for _, text := range texts {
		length := len(text) + 2
		for len(fmt.Sprintf("%d %s\n", length, text)) != length {
			length++
		}
		content += fmt.Sprintf("%d %s\n", length, text)
	}
	return typed(file(t, "records", content), tar.TypeXHeader)
}

// typed has the blocks of a file be of another type.
func typed(blocks []byte, kind byte) []byte {
	blocks[156] = kind
	copy(blocks[148:156], "        ")
	sum := 0
	for _, b := range blocks[:512] {
		sum += int(b)
	}
	copy(blocks[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return blocks
}

// TestExtractStopsEarly checks that a gzip stream without a tar archive is not
// unpacked to its end.
func TestExtractStopsEarly(t *testing.T) {
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	block := bytes.Repeat([]byte{0}, 1<<20)
	for range 512 {
		if _, err := zip.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	_ = zip.Close()
	header := tarball(t, tar.Header{Name: "a", Size: 1 << 40 >> 12}) // 256 MiB of zeros after a valid header
	var before, after runtime.MemStats
	for name, packed := range map[string][]byte{"without a header": bomb.Bytes(), "with a header": header} {
		runtime.ReadMemStats(&before)
		_, err := artifact.Extract(bytes.NewReader(packed), artifact.Limits{})
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
			t.Errorf("%s: %d MiB were allocated (%v)", name, grown>>20, err)
		}
	}
}

func FuzzExtract(f *testing.F) {
	f.Add(pack(f, artifact.Files{"a/b": {Data: []byte("x")}}))
	f.Add(tarball(f, tar.Header{Name: "d/", Typeflag: tar.TypeDir}, tar.Header{Name: "d/l", Typeflag: tar.TypeSymlink, Linkname: "/"}))
	f.Fuzz(func(t *testing.T, packed []byte) {
		files, err := artifact.Extract(bytes.NewReader(packed), artifact.Limits{Files: 100, Unpacked: 1 << 20})
		if err != nil {
			return
		}
		again, err := artifact.Extract(bytes.NewReader(pack(t, files)), artifact.Limits{Files: 100, Unpacked: 1 << 20, Ratio: 1 << 30})
		if err != nil || len(again) != len(files) {
			t.Errorf("%d files do not survive packing: %d, %v", len(files), len(again), err)
		}
	})
}
