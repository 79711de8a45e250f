package objects_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/sources/git/objects"
)

var (
	one, two = plumbing.NewHash(strings.Repeat("1", 40)), plumbing.NewHash(strings.Repeat("2", 40))
	began    = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
)

func keep(s *objects.Store, key objects.Key, text string) {
	s.Keep(key, objects.About{Commits: []plumbing.Hash{one}, Whole: int64(len(text))}, strings.NewReader(text), int64(len(text)))
}

// read returns what is kept; empty for nothing.
func read(t *testing.T, s *objects.Store, key objects.Key) string {
	t.Helper()
	kept := s.Open(key)
	if kept == nil {
		return ""
	}
	defer kept.Close()
	text, err := io.ReadAll(kept.Pack())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWhatIsKeptComesBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "git")
	s := objects.New(objects.Options{Dir: dir})
	if kept := s.Open(objects.Key{1}); kept != nil {
		t.Error("there is something before anything was kept")
	}
	about := objects.About{Commits: []plumbing.Hash{two, one}, Some: true, Whole: 4}
	s.Keep(objects.Key{1}, about, strings.NewReader("PACK"), 4)
	kept := objects.New(objects.Options{Dir: dir}).Open(objects.Key{1}) // after a restart
	if kept == nil {
		t.Fatal("nothing is there")
	}
	defer kept.Close()
	if diff := cmp.Diff(about, kept.About); diff != "" {
		t.Errorf("what is said of it (-want +got):\n%s", diff)
	}
	if text, err := io.ReadAll(kept.Pack()); string(text) != "PACK" || err != nil {
		t.Errorf("what is there = %q, %v", text, err)
	}
	s.Drop(objects.Key{1})
	if read(t, s, objects.Key{1}) != "" {
		t.Error("it is there after it was dropped")
	}
}

// TestWhatIsNotKept: nothing of it is a fault.
func TestWhatIsNotKept(t *testing.T) {
	full := errors.New("the disk is full")
	var is error
	dir := filepath.Join(t.TempDir(), "git")
	clock := clocktesting.NewFakePassiveClock(began)
	s := objects.New(objects.Options{Dir: dir, Most: 4000, Clock: clock, DiskFull: func() error { return is }})
	large := strings.Repeat("x", 900)
	keep(s, objects.Key{1}, large+strings.Repeat("x", 200))
	if read(t, s, objects.Key{1}) != "" {
		t.Error("one repository has more than a quarter of all")
	}
	is = full
	keep(s, objects.Key{1}, large)
	if read(t, s, objects.Key{1}) != "" {
		t.Error("it was kept on a full disk")
	}
	is = nil
	for n := range byte(5) {
		clock.SetTime(began.Add(time.Duration(n) * time.Minute))
		keep(s, objects.Key{n}, large)
		if n == 3 && read(t, s, objects.Key{0}) == "" { // it is used
			t.Error("the first is gone while there is room")
		}
	}
	got := map[byte]bool{}
	for n := range byte(5) {
		got[n] = read(t, s, objects.Key{n}) != ""
	}
	if diff := cmp.Diff(map[byte]bool{0: true, 1: false, 2: true, 3: true, 4: true}, got); diff != "" {
		t.Errorf("which are left (-want +got):\n%s", diff)
	}
	clock.SetTime(began.Add(8 * 24 * time.Hour))
	keep(s, objects.Key{9}, "PACK")
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("%d files after a week, want the new one alone", len(files))
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	keep(s, objects.Key{9}, "PACK")
	if read(t, s, objects.Key{9}) != "PACK" {
		t.Error("nothing is kept after the folder was deleted")
	}
}

// TestWhatIsLeftOver: what was not written to its end goes at the next start, and what is not ours is not read.
func TestWhatIsLeftOver(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"new-123": "half", "01" + strings.Repeat("0", 62) + ".objects": "something else\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := objects.New(objects.Options{Dir: dir})
	if read(t, s, objects.Key{1}) != "" {
		t.Error("a file that is not ours was read")
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("%d files are left", len(files))
	}
	failing := io.MultiReader(strings.NewReader("PA"), readerFunc(func([]byte) (int, error) { return 0, errors.New("boom") }))
	s.Keep(objects.Key{1}, objects.About{Commits: []plumbing.Hash{one}}, failing, 4)
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("%d files are left of what could not be written", len(files))
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestAbout(t *testing.T) {
	some := objects.About{Commits: []plumbing.Hash{one}, Some: true, Whole: 7}
	all := objects.About{Commits: []plumbing.Hash{one}, Whole: 7}
	for name, tc := range map[string]struct{ got, want objects.About }{
		"another commit":                           {all.With(two, false), objects.About{Commits: []plumbing.Hash{two, one}, Whole: 7}},
		"some files of another":                    {all.With(two, true), objects.About{Commits: []plumbing.Hash{two, one}, Some: true, Whole: 7}},
		"another where some files were there":      {some.With(two, true), objects.About{Commits: []plumbing.Hash{two, one}, Some: true, Whole: 7}},
		"all files where some were there":          {some.With(two, false), objects.About{Commits: []plumbing.Hash{two}, Whole: 7}},
		"the same commit, with the files it lacks": {some.With(one, false), objects.About{Commits: []plumbing.Hash{one}, Whole: 7}},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if (objects.About{Whole: 100 << 20}).Grown(150<<20) || !(objects.About{Whole: 100 << 20}).Grown(201<<20) || (objects.About{Whole: 10}).Grown(1<<20) || !(objects.About{Whole: 10}).Grown(9<<20) {
		t.Error("it has grown by as much again, or by 8 MiB, whichever is more")
	}
}

// FuzzOpen reads files of any content.
func FuzzOpen(f *testing.F) {
	f.Add([]byte("flotilla-objects-1 all 4 " + one.String() + "\nPACK"))
	f.Add([]byte("flotilla-objects-1 some -1 " + one.String() + "\n"))
	f.Add([]byte("flotilla-objects-1 all 4"))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		s := objects.New(objects.Options{Dir: dir})
		keep(s, objects.Key{}, "PACK")
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		if err := os.WriteFile(filepath.Join(dir, files[0].Name()), content, 0o600); err != nil {
			t.Fatal(err)
		}
		kept := s.Open(objects.Key{})
		if kept == nil {
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Error("what cannot be read stays")
			}
			return
		}
		defer kept.Close()
		if len(kept.Commits) == 0 || kept.Whole < 0 || kept.Pack().Size() > int64(len(content)) {
			t.Errorf("read %+v of %q", kept.About, content)
		}
	})
}
