package git_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/git/signed"
	"github.com/flotilla-io/flotilla/sources/signature"
)

// signingKey makes an SSH key with OpenSSH's own program, and configures the clone to sign with it.
func (f *fixture) signingKey() *signature.Keys {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "key")
	if out, err := exec.CommandContext(f.t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ann", "-f", path).CombinedOutput(); err != nil {
		f.t.Fatalf("%s: %s", err, out)
	}
	f.git("config", "gpg.format", "ssh")
	f.git("config", "user.signingkey", path)
	public, err := os.ReadFile(path + ".pub")
	if err != nil {
		f.t.Fatal(err)
	}
	keys, err := signature.Parse(map[string][]byte{"ann.sshpub": public})
	if err != nil {
		f.t.Fatal(err)
	}
	return keys
}

// TestWhatGitSigned verifies commits and tags that Git's own program signed.
func TestWhatGitSigned(t *testing.T) {
	f := newFixture(t)
	keys := f.signingKey()
	f.commit("first", map[string]string{"a.yaml": "a: 1"})
	f.git("config", "commit.gpgsign", "true")
	f.commit("second\n\nwith a body\n", map[string]string{"a.yaml": "a: 2"})
	f.git("tag", "-s", "-m", "signed", "v1")
	f.git("tag", "-a", "-m", "not signed", "v2")
	f.git("tag", "v3")
	f.git("tag", "-s", "-m", "of a tag", "v4", "v1")
	f.git("tag", "-s", "-m", "of the first", "v5", "HEAD~")
	f.git("push", "--quiet", "origin", "--tags")
	const good, unsigned, none = "signed by ann", "not verified: it is not signed", "no annotated tag"
	for name, tc := range map[string]struct {
		ref         git.Ref
		commit, tag string
	}{
		"a branch":               {git.Ref{Branch: "main"}, good, none},
		"a signed tag":           {git.Ref{Tag: "v1"}, good, good},
		"a tag by its full name": {git.Ref{Name: "refs/tags/v1"}, good, good},
		"a tag within a range":   {git.Ref{SemVer: "1.x"}, good, good},
		"an unsigned tag":        {git.Ref{Tag: "v2"}, good, unsigned},
		"a tag that only names":  {git.Ref{Tag: "v3"}, good, none},
		"a tag of a tag":         {git.Ref{Tag: "v4"}, good, good},
		"of an unsigned commit":  {git.Ref{Tag: "v5"}, unsigned, good},
	} {
		t.Run(name, func(t *testing.T) {
			remote := f.remote(f.url, git.Credentials{}, git.Options{})
			commit, err := remote.Resolve(t.Context(), tc.ref)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := remote.Fetch(t.Context(), commit)
			if err != nil {
				t.Fatal(err)
			}
			defer tree.Close()
			verified := func(s signed.Object, err error) string {
				if errors.Is(err, git.ErrNoTag) {
					return none
				}
				if err != nil {
					t.Fatal(err)
				}
				who, err := keys.Verify(s.Text, s.Signature, time.Now())
				if err != nil {
					return err.Error()
				}
				return "signed by " + who.Name
			}
			if diff := cmp.Diff([]string{tc.commit, tc.tag}, []string{verified(tree.SignedCommit()), verified(tree.SignedTag())}); diff != "" {
				t.Errorf("commit and tag (-want +got):\n%s", diff)
			}
		})
	}
}
