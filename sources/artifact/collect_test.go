package artifact_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/artifact"
)

func ptr(s string) *string { return &s }

func TestCollect(t *testing.T) {
	file := &fstest.MapFile{Data: []byte("x")}
	repository := fstest.MapFS{
		"README.md": file, "deploy/app.yaml": file, "deploy/sub/b.yaml": file, "logo.png": file, ".gitignore": file, ".git/config": file,
		".github/workflows/ci.yaml": file, ".sops.yaml": file, "chart.tgz": file, "bundle.tar.gz": file, "docs/a.md": file,
		"link": &fstest.MapFile{Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink}, "module": &fstest.MapFile{Mode: fs.ModeIrregular},
	}
	with := func(extra fstest.MapFS) fstest.MapFS {
		out := maps.Clone(repository)
		maps.Copy(out, extra)
		return out
	}
	cases := map[string]struct {
		tree      fstest.MapFS
		selection artifact.Selection
		want      []string
		wantErr   error
	}{
		"by default leaves out pictures, archives and what is for CI": {
			tree: repository,
			want: []string{"README.md", "chart.tgz", "deploy/app.yaml", "deploy/sub/b.yaml", "docs/a.md"},
		},
		"spec.ignore replaces the default exclusions but Git's own files stay out": {
			tree: repository, selection: artifact.Selection{Ignore: ptr("# all but deploy\n/*\n!/deploy\n")},
			want: []string{"deploy/app.yaml", "deploy/sub/b.yaml"},
		},
		"an empty spec.ignore changes nothing": {
			tree: repository, selection: artifact.Selection{Ignore: ptr("\n# nothing\n")},
			want: []string{"README.md", "chart.tgz", "deploy/app.yaml", "deploy/sub/b.yaml", "docs/a.md"},
		},
		"a .sourceignore at the top": {
			tree: with(fstest.MapFS{".sourceignore": {Data: []byte("docs/\n*.md\n.*\n*.png\n*gz\n")}}),
			want: []string{"deploy/app.yaml", "deploy/sub/b.yaml"},
		},
		"a .sourceignore further down counts below it only": {
			tree: with(fstest.MapFS{"deploy/.sourceignore": {Data: []byte("*.yaml\n")}}), selection: artifact.Selection{Directories: []string{"deploy", "docs"}},
			want: []string{"deploy/.sourceignore", "docs/a.md"},
		},
		"spec.ignore has the last word over .sourceignore": {
			tree: with(fstest.MapFS{".sourceignore": {Data: []byte("*\n")}}), selection: artifact.Selection{Ignore: ptr("!docs/a.md")},
			want: []string{"docs/a.md"},
		},
		"some directories only": {
			tree: repository, selection: artifact.Selection{Directories: []string{"./deploy/sub/", "deploy"}},
			want: []string{"deploy/app.yaml", "deploy/sub/b.yaml"},
		},
		"a directory that is not there": {
			tree: repository, selection: artifact.Selection{Directories: []string{"prod"}}, wantErr: artifact.ErrPath,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files, err := artifact.Collect(t.Context(), tc.tree, tc.selection, artifact.Limits{})
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("error = %v, want %v", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(files.Contents()))); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCollectLimits(t *testing.T) {
	tree := fstest.MapFS{}
	for i := range 100 {
		tree[fmt.Sprintf("f%d.yaml", i)] = &fstest.MapFile{Data: make([]byte, 100)}
		tree[fmt.Sprintf("f%d.png", i)] = &fstest.MapFile{Data: make([]byte, 100)}
	}
	for name, tc := range map[string]struct {
		limits  artifact.Limits
		wantErr error
	}{
		"what is left out does not count": {limits: artifact.Limits{Files: 100, Unpacked: 10_000}},
		"one file too many":               {limits: artifact.Limits{Files: 99}, wantErr: artifact.ErrTooLarge},
		"one byte too many":               {limits: artifact.Limits{Unpacked: 9_999}, wantErr: artifact.ErrTooLarge},
		"too much to look at":             {limits: artifact.Limits{Files: 1}, wantErr: artifact.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := artifact.Collect(t.Context(), tree, artifact.Selection{}, tc.limits); !errors.Is(err, tc.wantErr) {
				t.Errorf("error = %v, want %v", err, tc.wantErr)
			}
		})
	}
}

func TestCollectBoundsExclusions(t *testing.T) {
	lines := strings.Repeat("a/b\n", 600)
	everywhere := fstest.MapFS{}
	for n := range 20 {
		everywhere[fmt.Sprintf("d%d/.sourceignore", n)] = &fstest.MapFile{Data: []byte(lines)}
	}
	many := strings.Repeat(lines, 20)
	for name, tc := range map[string]struct {
		tree   fstest.MapFS
		ignore *string
	}{
		"in many directories": {tree: everywhere},
		"in one file":         {tree: fstest.MapFS{".sourceignore": {Data: []byte(many)}}},
		"in the spec":         {tree: fstest.MapFS{"a": {}}, ignore: &many},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := artifact.Collect(t.Context(), tc.tree, artifact.Selection{Ignore: tc.ignore}, artifact.Limits{}); !errors.Is(err, artifact.ErrTooLarge) {
				t.Errorf("error = %v, want ErrTooLarge", err)
			}
		})
	}
}

// unread is a tree of which only some files can be read.
type unread struct {
	fstest.MapFS
	some func(file string) bool
}

func (u unread) Open(name string) (fs.File, error) {
	if f, found := u.MapFS[name]; found && !f.Mode.IsDir() && !u.some(name) {
		return nil, fs.ErrNotExist
	}
	return u.MapFS.Open(name)
}

func (u unread) ReadFile(name string) ([]byte, error) {
	f, err := u.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// TestWhatIsNotReadNeedNotBeThere collects from trees that have only the files that the selection says it reads.
func TestWhatIsNotReadNeedNotBeThere(t *testing.T) {
	whole := fstest.MapFS{}
	for name, text := range map[string]string{
		".sourceignore": "*.md\n", "a.yaml": "a", "apps/a.yaml": "a", "apps/b.md": "b", "apps/web/a.yaml": "a", "apps/web/.sourceignore": "b.yaml\n",
		"apps/web/b.yaml": "b", "apps-old/a.yaml": "a", "other/.sourceignore": "/a.yaml\n", "other/a.yaml": "a", "z/apps/a.yaml": "a",
	} {
		whole[name] = &fstest.MapFile{Data: []byte(text)}
	}
	for _, directories := range [][]string{nil, {"."}, {"apps"}, {"/apps/"}, {"./apps/web"}, {"apps", "other"}, {"apps/web", "z"}} {
		selection := artifact.Selection{Directories: directories}
		want, err := artifact.Collect(t.Context(), whole, selection, artifact.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := artifact.Collect(t.Context(), unread{whole, selection.Reads}, selection, artifact.Limits{})
		if err != nil {
			t.Errorf("%q: %v", directories, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: files (-of the whole tree +of what is read):\n%s", directories, diff)
		}
	}
}

// TestAdditions is about files that others bring.
func TestAdditions(t *testing.T) {
	tree := fstest.MapFS{"a.yaml": {Data: []byte("a")}, "apps/b.yaml": {Data: []byte("b")}, "apps/b.png": {Data: []byte("b")}}
	files := func(names ...string) artifact.Files {
		out := artifact.Files{}
		for _, name := range names {
			out[name] = artifact.File{Data: []byte("x")}
		}
		return out
	}
	for name, tc := range map[string]struct {
		selection artifact.Selection
		want      string
		wantErr   string
	}{
		"beside others": {
			selection: artifact.Selection{Additions: []artifact.Addition{{Name: "x", Files: files("x.yaml", "apps/x.yaml", "apps/x.png")}}},
			want:      "a.yaml apps/b.yaml apps/x.yaml x.yaml",
		},
		"in the place of what is excluded": {
			selection: artifact.Selection{Ignore: ptr("apps/"), Additions: []artifact.Addition{{Name: "x", Files: files("x.yaml", "apps")}}},
			want:      "a.yaml apps x.yaml",
		},
		"in the place of what is not checked out": {
			selection: artifact.Selection{Directories: []string{"apps"}, Additions: []artifact.Addition{{Name: "x", Files: files("a.yaml")}}},
			want:      "a.yaml apps/b.yaml",
		},
		"in the place of another file": {
			selection: artifact.Selection{Additions: []artifact.Addition{{Name: "x", Files: files("a.yaml")}}},
			wantErr:   "a.yaml is there twice: the repository and x both have it",
		},
		"in the place of a folder": {
			selection: artifact.Selection{Additions: []artifact.Addition{{Name: "x", Files: files("y/z/a.yaml")}, {Name: "y", Files: files("y/z")}}},
			wantErr:   "y/z is there twice: x and y both have it",
		},
		"below a file": {
			selection: artifact.Selection{Additions: []artifact.Addition{{Name: "x", Files: files("a.yaml/b.yaml")}}},
			wantErr:   "a.yaml is there twice: the repository and x both have it",
		},
		"under a name that no archive may have": {
			selection: artifact.Selection{Additions: []artifact.Addition{{Name: "x", Files: files("../a.yaml")}}},
			wantErr:   `malformed archive: the name "../a.yaml" leads out of the archive`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := artifact.Collect(t.Context(), tree, tc.selection, artifact.Limits{})
			if text := fmt.Sprint(err); tc.wantErr != "" && text != tc.wantErr || tc.wantErr == "" && err != nil {
				t.Fatalf("error %q, want %q", text, tc.wantErr)
			}
			if names := strings.Join(slices.Sorted(maps.Keys(got)), " "); names != tc.want {
				t.Errorf("%s, want %s", names, tc.want)
			}
		})
	}
}

// TestLinks is about what is known of symbolic links: their names, also after an
// archive was read, and to nobody else.
func TestLinks(t *testing.T) {
	link := &fstest.MapFile{Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink}
	tree := fstest.MapFS{"a.yaml": {Data: []byte("a")}, "apps/b.yaml": link, "docs/c.md": link, ".sourceignore": link}
	files, err := artifact.Collect(t.Context(), tree, artifact.Selection{Ignore: ptr("*.md")}, artifact.Limits{Files: 1})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	if err := files.Pack(&packed); err != nil {
		t.Fatal(err)
	}
	foreign := tar.NewReader(must(gzip.NewReader(bytes.NewReader(packed.Bytes()))))
	var seen []string
	for {
		header, err := foreign.Next()
		if err != nil {
			break
		}
		seen = append(seen, fmt.Sprintf("%c %s", header.Typeflag, header.Name))
	}
	if diff := cmp.Diff([]string{"g GlobalHead.0.0", "0 a.yaml"}, seen); diff != "" {
		t.Errorf("others read (-want +got):\n%s", diff)
	}
	for name, got := range map[string]artifact.Files{"collected": files, "extracted": must(artifact.Extract(&packed, artifact.Limits{}))} {
		if diff := cmp.Diff([]string{".sourceignore", "apps/b.yaml"}, got.Links()); diff != "" {
			t.Errorf("%s: links (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(map[string][]byte{"a.yaml": []byte("a")}, got.Contents()); diff != "" {
			t.Errorf("%s: contents (-want +got):\n%s", name, diff)
		}
	}
}

// TestManyLinks: they are not recorded without bounds.
func TestManyLinks(t *testing.T) {
	tree := fstest.MapFS{}
	for n := range 3_000 {
		tree[fmt.Sprintf("%0200d", n)] = &fstest.MapFile{Mode: fs.ModeSymlink}
	}
	files := must(artifact.Collect(t.Context(), tree, artifact.Selection{}, artifact.Limits{}))
	var packed bytes.Buffer
	if err := files.Pack(&packed); err != nil {
		t.Fatal(err)
	}
	if got := len(must(artifact.Extract(&packed, artifact.Limits{})).Links()); len(files) != 1_000 || got == 0 || got*200 > 128<<10 {
		t.Errorf("of 3,000 links %d are collected, and %d packed", len(files), got)
	}
}

// TestAForeignRecordOfLinks: it takes no file's place, and leads nowhere.
func TestAForeignRecordOfLinks(t *testing.T) {
	for record, want := range map[string][]string{
		`["a.yaml","b","../c","/d",".",""]`: {"b"},
		`{"a":1}`:                           nil,
		`[[`:                                nil,
	} {
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		out := tar.NewWriter(zip)
		for _, err := range []error{
			out.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"FLOTILLA.links": record}}),
			out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a.yaml", Mode: 0o644}), out.Close(), zip.Close(),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		got := must(artifact.Extract(&packed, artifact.Limits{}))
		if diff := cmp.Diff(want, got.Links()); diff != "" || len(got.Contents()) != 1 {
			t.Errorf("%s: %d files, links (-want +got):\n%s", record, len(got.Contents()), diff)
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
