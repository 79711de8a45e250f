package git_test

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/git"
)

func TestSSH(t *testing.T) {
	f := newFixture(t)
	f.commit("one", map[string]string{"a.yaml": "one\n"})
	host, _ := newSigner(t)
	stranger, strangersIdentity := newSigner(t)
	client, identity := newSigner(t)
	server := newSSHServer(t, f.root, host, client.PublicKey())
	good := map[string]string{"identity": string(identity), "known_hosts": string(server.knownHosts(host.PublicKey()))}
	with := func(key, value string) map[string]string {
		out := map[string]string{}
		for k, v := range good {
			out[k] = v
		}
		out[key] = value
		return out
	}
	cases := map[string]struct {
		url     string
		secret  map[string]string
		wantErr error
	}{
		"a known host and identity": {secret: good},
		"a host that known_hosts does not name": {
			secret: with("known_hosts", "other.example.com "+string(ssh.MarshalAuthorizedKey(host.PublicKey()))), wantErr: git.ErrHostKeyUnknown,
		},
		"a host with another key":                   {secret: with("known_hosts", string(server.knownHosts(stranger.PublicKey()))), wantErr: git.ErrHostKeyChanged},
		"an identity that the server does not know": {secret: with("identity", string(strangersIdentity)), wantErr: git.ErrUnauthorized},
		"a repository that is gone":                 {url: server.url("gone"), secret: good, wantErr: git.ErrRepositoryNotFound},
		"the metadata address":                      {url: "ssh://git@169.254.169.254/app.git", secret: good, wantErr: egress.ErrNotAllowed},
		"a path with a quote in it":                 {url: server.url("it's; touch x"), secret: good, wantErr: git.ErrRepositoryNotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			url := tc.url
			if url == "" {
				url = server.url("app")
			}
			err := fetchMain(t.Context(), f.remote(url, credentials(t, url, tc.secret), git.Options{}))
			if !errors.Is(err, tc.wantErr) {
				t.Errorf("error = %v, want %v", err, tc.wantErr)
			}
			if errors.Is(tc.wantErr, git.ErrHostKey) && !errors.Is(err, git.ErrHostKey) {
				t.Errorf("error = %v, want an ErrHostKey", err)
			}
		})
	}
}

func TestSSHRefusesARotatedKey(t *testing.T) {
	f := newFixture(t)
	f.commit("one", nil)
	host, _ := newSigner(t)
	next, _ := newSigner(t)
	client, identity := newSigner(t)
	server := newSSHServer(t, f.root, host, client.PublicKey())
	secret := map[string]string{"identity": string(identity), "known_hosts": string(server.knownHosts(host.PublicKey()))}
	remote := f.remote(server.url("app"), credentials(t, server.url("app"), secret), git.Options{})
	if err := fetchMain(t.Context(), remote); err != nil {
		t.Fatal(err)
	}
	server.rotate(next)
	err := fetchMain(t.Context(), remote)
	if !errors.Is(err, git.ErrHostKeyChanged) || !strings.Contains(err.Error(), ssh.FingerprintSHA256(next.PublicKey())) {
		t.Errorf("error = %v, want one that shows the new fingerprint", err)
	}
}

func TestSSHRefusesAWeakKey(t *testing.T) {
	f := newFixture(t)
	f.commit("one", nil)
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	host, err := ssh.NewSignerFromKey(weak)
	if err != nil {
		t.Fatal(err)
	}
	client, identity := newSigner(t)
	server := newSSHServer(t, f.root, host, client.PublicKey())
	secret := map[string]string{"identity": string(identity), "known_hosts": string(server.knownHosts(host.PublicKey()))}
	err = fetchMain(t.Context(), f.remote(server.url("app"), credentials(t, server.url("app"), secret), git.Options{}))
	if !errors.Is(err, git.ErrHostKey) {
		t.Errorf("error = %v, want ErrHostKey", err)
	}
}

func TestSSHRefusesSHA1(t *testing.T) {
	f := newFixture(t)
	f.commit("one", nil)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	host, err := ssh.NewSignerWithAlgorithms(plain.(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSA})
	if err != nil {
		t.Fatal(err)
	}
	client, identity := newSigner(t)
	server := newSSHServer(t, f.root, host, client.PublicKey())
	secret := map[string]string{"identity": string(identity), "known_hosts": string(server.knownHosts(host.PublicKey()))}
	err = fetchMain(t.Context(), f.remote(server.url("app"), credentials(t, server.url("app"), secret), git.Options{}))
	if !errors.Is(err, git.ErrHostKey) {
		t.Errorf("error = %v, want ErrHostKey", err)
	}
}

func TestSSHNeedsCredentials(t *testing.T) {
	if _, err := git.NewRemote("ssh://git@example.com/r.git", git.Credentials{}, git.Options{}); !errors.Is(err, git.ErrCredentials) {
		t.Errorf("error = %v, want ErrCredentials", err)
	}
	if got := fmt.Sprint(git.ErrHostKeyUnknown); !strings.Contains(got, "not trusted") {
		t.Errorf("text = %q", got)
	}
}

func TestSSHAnnotatedTag(t *testing.T) {
	f := newFixture(t)
	want := f.commit("one", map[string]string{"a.yaml": "one\n"})
	f.git("tag", "-a", "v1", "-m", "first")
	f.git("push", "--quiet", "origin", "v1")
	f.commit("two", map[string]string{"a.yaml": "two\n"})
	host, _ := newSigner(t)
	client, identity := newSigner(t)
	server := newSSHServer(t, f.root, host, client.PublicKey())
	secret := map[string]string{"identity": string(identity), "known_hosts": string(server.knownHosts(host.PublicKey()))}
	remote := f.remote(server.url("app"), credentials(t, server.url("app"), secret), git.Options{})
	commit, err := remote.Resolve(t.Context(), git.Ref{Tag: "v1"})
	if err != nil || commit.Hash != want {
		t.Fatalf("Resolve = %v, %v; want %s", commit, err, want)
	}
	tree, err := remote.Fetch(t.Context(), commit)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if text, err := tree.ReadFile("a.yaml"); err != nil || string(text) != "one\n" {
		t.Errorf("a.yaml = %q, %v", text, err)
	}
}
