package artifact_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/artifact"
)

// archive makes a tar.gz of entries.
func archive(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, header := range entries {
		if header.Typeflag == tar.TypeReg {
			header.Size = 1
		}
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestExtractWithoutLinks checks that symbolic links are left out, and nothing else that Extract refuses.
func TestExtractWithoutLinks(t *testing.T) {
	file := tar.Header{Typeflag: tar.TypeReg, Name: "app.yaml"}
	for name, tc := range map[string]struct {
		also tar.Header
		want error
	}{
		"a link within":              {tar.Header{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "app.yaml"}, nil},
		"a link out of it":           {tar.Header{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "/etc/passwd"}, nil},
		"a link whose name leads up": {tar.Header{Typeflag: tar.TypeSymlink, Name: "../link", Linkname: "app.yaml"}, artifact.ErrMalformed},
		"a hard link":                {tar.Header{Typeflag: tar.TypeLink, Name: "link", Linkname: "app.yaml"}, artifact.ErrMalformed},
		"a device":                   {tar.Header{Typeflag: tar.TypeChar, Name: "null"}, artifact.ErrMalformed},
		"a file behind a link":       {tar.Header{Typeflag: tar.TypeReg, Name: "../app.yaml"}, artifact.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			packed := archive(t, file, tc.also)
			got, links, err := artifact.ExtractWithoutLinks(bytes.NewReader(packed), artifact.Limits{})
			if !errors.Is(err, tc.want) {
				t.Fatalf("the error is %v, want %v", err, tc.want)
			}
			if diff := cmp.Diff(artifact.Files{"app.yaml": {Data: []byte("x")}}, got); tc.want == nil && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"link"}, links); tc.want == nil && diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
			if _, err := artifact.Extract(bytes.NewReader(packed), artifact.Limits{}); !errors.Is(err, artifact.ErrMalformed) {
				t.Errorf("Extract = %v, want %v", err, artifact.ErrMalformed)
			}
		})
	}
}

// TestSelect checks that files are selected as those of a repository are.
func TestSelect(t *testing.T) {
	files := artifact.Files{
		"app.yaml":        {Data: []byte("1")},
		"deep/a/b/c.yaml": {Data: []byte("2"), Executable: true},
		"deep/skip.md":    {Data: []byte("3")},
		"other/d.yaml":    {Data: []byte("4")},
		".sourceignore":   {Data: []byte("*.md\n")},
	}
	got, err := files.Select(t.Context(), artifact.Selection{Ignore: ptr("/other\n")}, artifact.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := artifact.Files{"app.yaml": files["app.yaml"], "deep/a/b/c.yaml": files["deep/a/b/c.yaml"], ".sourceignore": files[".sourceignore"]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := files.Select(t.Context(), artifact.Selection{}, artifact.Limits{Files: 1}); !errors.Is(err, artifact.ErrTooLarge) {
		t.Errorf("beyond the limits: %v, want %v", err, artifact.ErrTooLarge)
	}
	twice := artifact.Files{"a": {Data: []byte("1")}, "a/b": {Data: []byte("2")}}
	if _, err := twice.Select(t.Context(), artifact.Selection{}, artifact.Limits{}); !errors.Is(err, artifact.ErrMalformed) {
		t.Errorf("a file that is a folder: %v, want %v", err, artifact.ErrMalformed)
	}
}

// TestPutPacked checks that an archive is kept byte for byte, and read as any other.
func TestPutPacked(t *testing.T) {
	s := newStore(t, t.TempDir())
	packed := archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "app.yaml", Mode: 0o600})
	no := errors.New("no room")
	if _, err := artifact.PutPacked(t.Context(), s, "a", packed, func(int64) error { return no }); !errors.Is(err, no) {
		t.Errorf("without room: %v", err)
	}
	stored, err := artifact.PutPacked(t.Context(), s, "a", packed, func(int64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256(packed)); stored.Digest != want || stored.Size != int64(len(packed)) || !s.Owns("a", want) {
		t.Errorf("stored %+v, want %s", stored, want)
	}
	got, err := s.Open(t.Context(), stored.Digest)
	if diff := cmp.Diff(artifact.Files{"app.yaml": {Data: []byte("x")}}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if err := s.Release("a"); err != nil {
		t.Fatal(err)
	}
	if err := artifact.RestorePacked(t.Context(), s, "a", "sha256:"+fmt.Sprintf("%064d", 0), packed); !errors.Is(err, artifact.ErrNotFound) {
		t.Errorf("as another one: %v, want %v", err, artifact.ErrNotFound)
	}
	if err := artifact.RestorePacked(t.Context(), s, "a", stored.Digest, packed); err != nil || !s.Has(stored.Digest) {
		t.Errorf("it is not there again: %v", err)
	}
}

// FuzzSelect checks that whatever an archive holds is read as a tree of files, if it is read at all.
func FuzzSelect(f *testing.F) {
	f.Add("app.yaml", "deep/a.yaml")
	f.Add("a", "a/b")
	f.Add("a/b", "a")
	f.Fuzz(func(t *testing.T, first, second string) {
		files := artifact.Files{}
		for _, name := range slices.Compact([]string{first, second}) {
			if !fs.ValidPath(name) || name == "." {
				return // which Extract refuses
			}
			files[name] = artifact.File{Data: []byte(name)}
		}
		_, _ = files.Select(t.Context(), artifact.Selection{}, artifact.Limits{})
	})
}
