package artifact_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
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
