package folder_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/oci/folder"
)

// tree makes a folder: a name that ends in "*" is of a file that can be run, a content that begins with "->" is a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "tree")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		plain, runs := strings.CutSuffix(name, "*")
		at := filepath.Join(root, plain)
		mode := fs.FileMode(0o644)
		if runs {
			mode = 0o755
		}
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		if to, link := strings.CutPrefix(content, "->"); link {
			err = errors.Join(err, os.Symlink(to, at))
		} else {
			err = errors.Join(err, os.WriteFile(at, []byte(content), mode), os.Chmod(at, mode))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// content is what is in a folder, as tree takes it.
func content(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(root, at)
		if entry.Type()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(at)
			out[name] = "->" + to
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode()&0o100 != 0 {
			name += "*"
		}
		text, failed := os.ReadFile(at)
		out[name] = string(text)
		return errors.Join(err, failed)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// entries are what is in an archive, in its order.
func entries(t *testing.T, layer []byte) []string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(layer))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for r := tar.NewReader(zip); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(time.Unix(0, 0)) || header.Uid+header.Gid != 0 || header.Uname+header.Gname != "" {
			t.Errorf("%s says when, or whose, it is", header.Name)
		}
		out = append(out, header.FileInfo().Mode().String()+" "+header.Name+" "+string(text))
	}
}

// TestPack is about what belongs to a layer.
func TestPack(t *testing.T) {
	elsewhere := tree(t, map[string]string{"base.yaml": "base"})
	for name, test := range map[string]struct {
		files     map[string]string
		at        string // below the folder
		selection folder.Selection
		want      []string
		links     []string
	}{
		"files in folders, in order": {
			files: map[string]string{"b.yaml": "B", "a/x.yaml": "X", "a/run.sh*": "R"},
			want:  []string{"drwxr-xr-x . ", "drwxr-xr-x a ", "-rwxr-xr-x a/run.sh R", "-rw-r--r-- a/x.yaml X", "-rw-r--r-- b.yaml B"},
		},
		"what is left out": {
			files:     map[string]string{".git/config": "G", "a.png": "P", "a.yaml": "A", "old/b.yaml": "B"},
			selection: folder.Selection{Ignore: append(folder.Ignored(), "old/")},
			want:      []string{"drwxr-xr-x . ", "-rw-r--r-- a.yaml A"},
		},
		"an exclusion that takes back": {
			files:     map[string]string{"a.txt": "A", "b.txt": "B"},
			selection: folder.Selection{Ignore: []string{"*.txt", "!b.txt"}},
			want:      []string{"drwxr-xr-x . ", "-rw-r--r-- b.txt B"},
		},
		"a single file": {
			files: map[string]string{"app/web.yaml": "W", "app/db.yaml": "D"}, at: "app/web.yaml",
			want: []string{"drwx------ . ", "-rw-r--r-- web.yaml W"},
		},
		"links are left out": {
			files: map[string]string{"a.yaml": "A", "link.yaml": "->a.yaml", "out": "->/etc", "nowhere": "->none"},
			want:  []string{"drwxr-xr-x . ", "-rw-r--r-- a.yaml A"}, links: []string{"link.yaml", "nowhere", "out"},
		},
		"links are resolved": {
			files:     map[string]string{"a/x.yaml": "X", "b": "->a", "c.yaml": "->a/x.yaml", "base": "->" + elsewhere},
			selection: folder.Selection{Resolve: true},
			want: []string{"drwxr-xr-x . ", "drwxr-xr-x a ", "-rw-r--r-- a/x.yaml X", "drwxr-xr-x b ", "-rw-r--r-- b/x.yaml X",
				"drwxr-xr-x base ", "-rw-r--r-- base/base.yaml base", "-rw-r--r-- c.yaml X"},
		},
		"links that lead round and round": {
			files:     map[string]string{"a/x.yaml": "X", "a/up": "->.."},
			selection: folder.Selection{Resolve: true},
			want:      []string{"drwxr-xr-x . ", "drwxr-xr-x a ", "-rw-r--r-- a/x.yaml X"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			packed, err := folder.Pack(t.Context(), filepath.Join(tree(t, test.files), test.at), test.selection)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, entries(t, packed.Layer)); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.links, packed.Links); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEqualFilesGiveEqualBytes: neither times nor who may write count.
func TestEqualFilesGiveEqualBytes(t *testing.T) {
	pack := func(change func(root string) error) []byte {
		t.Helper()
		root := tree(t, map[string]string{"a/x.yaml": "X", "run.sh*": "R"})
		if err := change(root); err != nil {
			t.Fatal(err)
		}
		packed, err := folder.Pack(t.Context(), root, folder.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		return packed.Layer
	}
	one := pack(func(string) error { return nil })
	other := pack(func(root string) error {
		at := filepath.Join(root, "a", "x.yaml")
		return errors.Join(os.Chmod(at, 0o660), os.Chmod(filepath.Join(root, "a"), 0o775), os.Chmod(filepath.Join(root, "run.sh"), 0o700), os.Chtimes(at, time.Unix(1e9, 0), time.Unix(1e9, 0)))
	})
	if !bytes.Equal(one, other) {
		t.Error("the bytes differ")
	}
}

// TestPackRefuses is about what is not packed.
func TestPackRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		files  map[string]string
		at     string
		limits artifact.Limits
		is     error
		text   string
	}{
		"what is not there":     {at: "none", is: folder.ErrPath, text: "nothing to pack: there is no ROOT/none: name a folder, or a file"},
		"a device":              {files: map[string]string{"null": "->/dev/null"}, at: "null", is: folder.ErrPath, text: "nothing to pack: ROOT/null is neither a folder nor a file"},
		"too much":              {files: map[string]string{"a": "123", "b": "456"}, limits: artifact.Limits{Unpacked: 5}, is: artifact.ErrTooLarge, text: "ROOT is too large: more than 5 bytes, which no OCIRepository takes; leave some out with --ignore-paths"},
		"too many":              {files: map[string]string{"a": "1", "b": "2", "c": "3"}, limits: artifact.Limits{Files: 2}, is: artifact.ErrTooLarge, text: "ROOT is too large: more than 2 files, which no OCIRepository takes; leave some out with --ignore-paths"},
		"names that are twins":  {files: map[string]string{"Web.yaml": "1", "web.yaml": "2"}, is: artifact.ErrMalformed, text: `pack ROOT: malformed archive: the names "Web.yaml" and "web.yaml" differ only in case, or in how their letters are encoded, and are the same on many disks: rename one`},
		"a name nobody unpacks": {files: map[string]string{"a\nb": "1"}, is: artifact.ErrMalformed, text: `pack ROOT: malformed archive: the name "a\nb" holds control characters`},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, test.files)
			_, err := folder.Pack(t.Context(), filepath.Join(root, test.at), folder.Selection{Limits: test.limits})
			if !errors.Is(err, test.is) {
				t.Fatalf("it is %v", err)
			}
			if diff := cmp.Diff(test.text, strings.ReplaceAll(err.Error(), root, "ROOT")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPackText is about a layer of one text.
func TestPackText(t *testing.T) {
	packed, err := folder.PackText("manifests.yaml", []byte("kind: A\n"), artifact.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"drwx------ . ", "-rw-r--r-- manifests.yaml kind: A\n"}, entries(t, packed.Layer)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWrite is about what becomes of a folder that files are written to.
func TestWrite(t *testing.T) {
	files := artifact.Files{"app/web.yaml": {Data: []byte("new")}, "run.sh": {Data: []byte("R"), Executable: true}, "link": {Link: true}}
	for name, test := range map[string]struct {
		before map[string]string
		at     string // below the folder
		want   map[string]string
		fails  bool
	}{
		"it is made":             {at: "deep/down", want: map[string]string{"deep/down/app/web.yaml": "new", "deep/down/run.sh*": "R"}},
		"it is empty":            {want: map[string]string{"app/web.yaml": "new", "run.sh*": "R"}},
		"files are replaced":     {before: map[string]string{"app/web.yaml": "old", "mine": "M"}, want: map[string]string{"app/web.yaml": "new", "run.sh*": "R", "mine": "M"}},
		"a link is replaced":     {before: map[string]string{"run.sh": "->mine", "mine": "M"}, want: map[string]string{"app/web.yaml": "new", "run.sh*": "R", "mine": "M"}},
		"a link leads out of it": {before: map[string]string{"app": "->/"}, want: map[string]string{"app": "->/"}, fails: true},
		"a file stands there":    {before: map[string]string{"app": "A"}, want: map[string]string{"app": "A"}, fails: true},
		"it is a file":           {before: map[string]string{"file": "F"}, at: "file", want: map[string]string{"file": "F"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, test.before)
			err := folder.Write(filepath.Join(root, test.at), files)
			if (err != nil) != test.fails || err != nil && !errors.Is(err, folder.ErrTarget) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(test.want, content(t, root)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnpack is about layers of others.
func TestUnpack(t *testing.T) {
	var twins bytes.Buffer
	if err := (artifact.Files{"Web.yaml": {}, "web.yaml": {}}).Pack(&twins); err != nil {
		t.Fatal(err)
	}
	for name, layer := range map[string][]byte{"twins": twins.Bytes(), "nothing": nil, "a text": []byte("kind: A"), "half an archive": {0x1f, 0x8b, 8}} {
		if _, _, err := folder.Unpack(layer, artifact.Limits{}); !errors.Is(err, artifact.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnpackLeavesOutWhatGitObeys: whoever pulls into a checkout is not to run what others pushed.
func TestUnpackLeavesOutWhatGitObeys(t *testing.T) {
	files := artifact.Files{}
	left := []string{
		".GIT/config", "app/db/.git", ".git /x", ".git./config", ".git::$INDEX_ALLOCATION/config", ".g\u200cit/config", "GIT~1/config", "app/.git/hooks/post-commit",
	}
	kept := []string{".gitattributes", ".github/a.yaml", "app/.gitignore", "app/web.git/config", "git/config"}
	for _, name := range slices.Concat(left, kept) {
		files[name] = artifact.File{Data: []byte("x"), Executable: true}
	}
	var layer bytes.Buffer
	if err := files.Pack(&layer); err != nil {
		t.Fatal(err)
	}
	got, out, err := folder.Unpack(layer.Bytes(), artifact.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	slices.Sort(left)
	if diff := cmp.Diff(left, out); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
}
