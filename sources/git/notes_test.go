package git_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/git/note"
)

func (f *fixture) note(commit string) string {
	f.t.Helper()
	f.git("fetch", "--quiet", "origin", "+refs/notes/flotilla:refs/notes/flotilla")
	return f.git("notes", "--ref=flotilla", "show", commit)
}

func TestWriteNote(t *testing.T) {
	f := newFixture(t)
	commit := f.commit("one", nil)
	remote := f.remote(f.url, git.Credentials{}, git.Options{})
	write := func(context, state, description string) bool {
		t.Helper()
		wrote, err := remote.WriteNote(t.Context(), commit, note.Line{Context: context, State: state, Description: description}, someone)
		if err != nil {
			t.Fatal(err)
		}
		return wrote
	}
	write("kustomization/web", "pending", "1/3 clusters ready")
	write("kustomization/api", "success", "3/3 clusters ready")
	write("Kustomization/Web", "failure", "2/3 clusters ready:\neu-3 waits")
	want := "kustomization/api: success 3/3 clusters ready\nKustomization/Web: failure 2/3 clusters ready: eu-3 waits"
	if diff := cmp.Diff(want, f.note(commit)); diff != "" {
		t.Errorf("note as git shows it (-want +got):\n%s", diff)
	}
	if !strings.Contains(f.git("log", "--show-notes=flotilla", "-1"), "kustomization/api: success") {
		t.Error("git log does not show the note")
	}
	if write("kustomization/api", "success", "3/3 clusters ready") {
		t.Error("the same note was written again")
	}
	note, err := remote.ReadNote(t.Context(), commit)
	if err != nil || strings.TrimSpace(note.String()) != want {
		t.Errorf("ReadNote = %q, %v", note, err)
	}
	// The objects are sound for git fsck.
	if out, err := gitserver.Git(t.Context(), f.root+"/app.git", "fsck", "--strict"); err != nil {
		t.Errorf("fsck: %v %s", err, out)
	}
}

func TestWriteNoteKeepsWhatOthersWrote(t *testing.T) {
	f := newFixture(t)
	commit := f.commit("one", nil)
	f.git("notes", "--ref=flotilla", "add", "-m", "written by hand\nci: green", commit)
	f.git("push", "--quiet", "origin", "refs/notes/flotilla")
	remote := f.remote(f.url, git.Credentials{}, git.Options{})
	if _, err := remote.WriteNote(t.Context(), commit, note.Line{Context: "web", State: "success"}, someone); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("ci: green\nweb: success\nwritten by hand", f.note(commit)); diff != "" {
		t.Errorf("note (-want +got):\n%s", diff)
	}
}

func TestWriteNoteAtOnce(t *testing.T) {
	f := newFixture(t)
	commit := f.commit("one", nil)
	const writers = 4
	var wg sync.WaitGroup
	errs := make(chan error, writers)
	for i := range writers {
		remote := f.remote(f.url, git.Credentials{}, git.Options{})
		wg.Go(func() {
			_, err := remote.WriteNote(t.Context(), commit, note.Line{Context: fmt.Sprintf("app-%d", i), State: "success"}, someone)
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff("app-0: success\napp-1: success\napp-2: success\napp-3: success", f.note(commit)); diff != "" {
		t.Errorf("note (-want +got):\n%s", diff)
	}
}

// TestWriteNoteAmongMany writes a note where there are so many that Git has split
// the notes' tree into directories.
func TestWriteNoteAmongMany(t *testing.T) {
	f := newFixture(t)
	var stream, commits strings.Builder
	stream.WriteString("blob\nmark :1\ndata 5\nnote\n")
	for i := range 600 {
		fmt.Fprintf(&stream, "commit refs/heads/main\nmark :%d\ncommitter A <a@b> %d +0000\ndata 1\nx\n", i+2, 1_700_000_000+i)
		fmt.Fprintf(&commits, "N :1 :%d\n", i+2)
	}
	fmt.Fprintf(&stream, "commit refs/notes/flotilla\ncommitter A <a@b> 1700000000 +0000\ndata 1\nn\n%s", commits.String())
	f.fastImport(stream.String())
	f.git("push", "--quiet", "origin", "+main", "+refs/notes/flotilla")
	if !strings.Contains(f.git("ls-tree", "--name-only", "-r", "refs/notes/flotilla"), "/") {
		t.Fatal("git did not split the notes")
	}
	remote := f.remote(f.url, git.Credentials{}, git.Options{})
	fresh := f.commit("fresh", nil)
	for _, commit := range []string{f.git("rev-parse", "main~300"), fresh} {
		if _, err := remote.WriteNote(t.Context(), commit, note.Line{Context: "web", State: "success"}, someone); err != nil {
			t.Fatal(err)
		}
		if got := f.note(commit); !strings.HasPrefix(got, "web: success") {
			t.Errorf("note of %s = %q", commit, got)
		}
	}
	if got := len(strings.Split(f.git("notes", "--ref=flotilla", "list"), "\n")); got != 601 {
		t.Errorf("%d notes, want 601", got)
	}
}

func TestWriteNoteOverSSH(t *testing.T) {
	f := newFixture(t)
	commit := f.commit("one", nil)
	host, _ := newSigner(t)
	client, identity := newSigner(t)
	server := newSSHServer(t, f.root, host, client.PublicKey())
	secret := map[string]string{"identity": string(identity), "known_hosts": string(server.knownHosts(host.PublicKey()))}
	remote := f.remote(server.url("app"), credentials(t, server.url("app"), secret), git.Options{})
	if _, err := remote.WriteNote(t.Context(), commit, note.Line{Context: "web", State: "success", Description: "3/3"}, someone); err != nil {
		t.Fatal(err)
	}
	if got := f.note(commit); got != "web: success 3/3" {
		t.Errorf("note = %q", got)
	}
}

func FuzzParseNote(f *testing.F) {
	for _, seed := range []string{"", "a: success done\n", "by hand\n", "a: b\nA: c\n", ": x\n", "a:  b\n", "\x00\n", "a: b  c\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first := note.Parse([]byte(text)).With(note.Line{Context: "ctx", State: "success", Description: text})
		again := note.Parse([]byte(first.String()))
		if again.String() != first.String() {
			t.Errorf("a note does not read back: %q, then %q", first.String(), again.String())
		}
	})
}
