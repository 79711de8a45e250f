package git_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/git"
)

// TestThisMachineIsNotReached checks that a GitRepository can neither connect to
// the control plane's own machine nor find out what listens there.
func TestThisMachineIsNotReached(t *testing.T) {
	_, identity := newSigner(t)
	listening, closed := listener(t), listener(t)
	open := listening.port
	shut := closed.port
	_ = closed.Close()
	for _, form := range []string{
		"http://127.0.0.1:%d/app.git", "https://127.0.0.1:%d/app.git", "http://127.9.9.9:%d/app.git", "http://localhost:%d/app.git",
		"http://[::1]:%d/app.git", "http://[::ffff:127.0.0.1]:%d/app.git", "http://user:" + canary + "@127.0.0.1:%d/app.git",
		"ssh://git@127.0.0.1:%d/app.git", "ssh://git@localhost:%d/app.git", "http://0.0.0.0:%d/app.git", "http://[::]:%d/app.git",
	} {
		t.Run(form, func(t *testing.T) {
			reported := map[int]string{}
			for _, port := range []int{open, shut} {
				url := fmt.Sprintf(form, port)
				var cred git.Credentials
				if strings.HasPrefix(url, "ssh") {
					known := fmt.Sprintf("[127.0.0.1]:%d %s\n", port, "ssh-ed25519 "+someKey)
					cred = credentials(t, url, map[string]string{"identity": string(identity), "known_hosts": known})
				}
				remote, err := git.NewRemote(url, cred, git.Options{TempDir: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				_, err = remote.Resolve(t.Context(), git.Ref{Branch: "main"})
				if err == nil {
					t.Fatal("it was read")
				}
				noCanary(t, err)
				reported[port] = strings.ReplaceAll(err.Error(), fmt.Sprint(port), "PORT")
			}
			if reported[open] != reported[shut] {
				t.Errorf("who asks learns what listens:\n%s\n%s", reported[open], reported[shut])
			}
			if !strings.Contains(reported[open], "not allowed") {
				t.Errorf("the refusal says %q", reported[open])
			}
		})
	}
	if n := listening.end(); n > 0 {
		t.Errorf("%d connections were made", n)
	}
}

// counted is a listener that counts connections.
type counted struct {
	net.Listener
	port  int
	came  int
	ended chan struct{}
}

func listener(t *testing.T) *counted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &counted{Listener: l, port: l.Addr().(*net.TCPAddr).Port, ended: make(chan struct{})}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		defer close(c.ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.came++
			_ = conn.Close()
		}
	}()
	return c
}

// end closes the listener and returns the number of connections.
func (c *counted) end() int {
	_ = c.Close()
	<-c.ended
	return c.came
}

// TestNothingOfAnAnswerIsShown checks that no error shows any part of a response
// of a server that need not be a Git server.
func TestNothingOfAnAnswerIsShown(t *testing.T) {
	f := &fixture{t: t}
	answers := map[string]func(w http.ResponseWriter, r *http.Request){
		"a page":                         func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, canary) },
		"an error":                       func(w http.ResponseWriter, _ *http.Request) { http.Error(w, canary, http.StatusInternalServerError) },
		"another content type":           func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", canary) },
		"an error in words":              advertise(pkt("ERR " + canary)),
		"an error that it is not there":  advertise(pkt("ERR " + canary + " not found")),
		"an error that access is denied": advertise(pkt("ERR " + canary + " access denied")),
		"refs that are none":             advertise(pkt("# service=git-upload-pack\n") + "0000" + pkt(canary+strings.Repeat("x", 60)+"\n")),
		"no lines":                       advertise(canary),
		"a redirect to another scheme": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", canary+"://x/y")
			w.WriteHeader(302)
		},
		"a redirect to another page":  redirectTo("/" + canary),
		"a redirect that is no URL":   redirectTo("http://[" + canary),
		"a redirect to a bad address": redirectTo("http://169.254.169.254/" + canary + "/info/refs"),
		"a line that is not HTTP":     raw(canary + "\r\n\r\n"),
		"a header that is none":       raw("HTTP/1.1 200 OK\r\n" + canary + "\r\n\r\n"),
		"a status that is none":       raw("HTTP/1.1 2" + canary + "\r\n\r\n"),
		"a length that is none":       raw("HTTP/1.1 200 OK\r\nContent-Length: " + canary + "\r\n\r\n"),
		"an encoding that is none":    raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: " + canary + "\r\n\r\n"),
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, answer)
			err := fetchMain(t.Context(), f.remote(s, git.Credentials{}, git.Options{}))
			if err == nil {
				t.Fatal("it was taken for a repository")
			}
			noCanary(t, err)
		})
	}
}

func newServer(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/"+canary) {
			w.WriteHeader(http.StatusOK)
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			return
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/app.git"
}

func advertise(body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		fmt.Fprint(w, body)
	}
}

func redirectTo(location string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
	}
}

// raw returns a handler that sends bytes that need not be HTTP.
func raw(answer string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = conn.Write([]byte(answer))
			_ = conn.Close()
		}
	}
}

func TestMain(m *testing.M) {
	// HTTP clients read these variables only once, so they are set for all tests.
	// Nothing listens at this address.
	_ = os.Setenv("HTTP_PROXY", "http://127.0.0.1:9")
	_ = os.Setenv("HTTPS_PROXY", "http://127.0.0.1:9")
	os.Exit(m.Run())
}

// TestProxiesOfTheEnvironmentAreNotUsed checks that connections are direct unless
// the program that starts the loops says otherwise.
func TestProxiesOfTheEnvironmentAreNotUsed(t *testing.T) {
	f := newFixture(t)
	f.commit("one", nil)
	front := httptest.NewServer(f.front())
	defer front.Close()
	for _, scheme := range []string{"http", "https"} {
		var dialed []string
		opts := git.Options{Egress: egress.Dialer{
			Networks: loopback,
			LookupNetIP: func(context.Context, string, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
			},
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				dialed = append(dialed, address)
				return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(front.URL, "http://"))
			},
		}}
		_, err := f.remote(scheme+"://git.example.com/app.git", git.Credentials{}, opts).Resolve(t.Context(), git.Ref{Branch: "main"})
		if (err == nil) != (scheme == "http") { // the server does not speak TLS
			t.Errorf("%s: %v", scheme, err)
		}
		for _, address := range dialed {
			if !strings.HasPrefix(address, "93.184.215.14:") {
				t.Errorf("%s: a connection to %s was made", scheme, address)
			}
		}
		if len(dialed) == 0 {
			t.Errorf("%s: no connection was made", scheme)
		}
	}
}

// TestRedirectsAreJudgedAgain checks that the target of a redirect gets no
// credentials or connection and that errors do not name it, unless an
// administrator has allowed that network.
func TestRedirectsAreJudgedAgain(t *testing.T) {
	f := newFixture(t)
	f.commit("one", nil)
	inner := listener(t)
	for name, tc := range map[string]struct {
		to   string
		want error
		says string
	}{
		"to a private address":                  {to: "http://10.77.0.1:%d", want: egress.ErrNotAllowed, says: "a host that it redirects to leads to a private address"},
		"to a name that leads there":            {to: "http://" + canary + ".internal:%d", want: egress.ErrNotAllowed, says: "address not allowed: a host that it redirects to is not there, or leads to where no source may be"},
		"to another loopback address":           {to: "http://[::1]:%d", want: egress.ErrNotAllowed, says: "a loopback address"},
		"to metadata":                           {to: "http://169.254.169.254:%d", want: git.ErrRedirect, says: "link-local"},
		"to metadata, by a gateway":             {to: "http://[64:ff9b::a9fe:a9fe]:%d", want: egress.ErrNotAllowed, says: "link-local"},
		"to a name that nobody knows":           {to: "http://" + canary + ".unknown:%d", want: egress.ErrNotAllowed, says: "address not allowed: a host that it redirects to is not there, or leads to where no source may be"},
		"to the control plane itself":           {to: "http://127.0.0.1:%d", want: egress.ErrNotAllowed, says: "the control plane itself"},
		"to the control plane, with a password": {to: "http://" + canary + ":x@127.0.0.1:%d", want: egress.ErrNotAllowed, says: "the control plane itself"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, fmt.Sprintf(tc.to, inner.port)+r.URL.String(), http.StatusFound)
			}))
			defer s.Close()
			opts := git.Options{Egress: egress.Dialer{
				Networks: loopback, Own: []string{fmt.Sprintf(":%d", inner.port)},
				LookupNetIP: func(_ context.Context, _, host string) ([]netip.Addr, error) {
					if strings.HasSuffix(host, ".internal") {
						return []netip.Addr{netip.MustParseAddr("10.77.0.1")}, nil
					}
					return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
				},
			}}
			err := fetchMain(t.Context(), f.remote(s.URL+"/app.git", git.Credentials{}, opts))
			if err == nil || !strings.Contains(err.Error(), tc.says) || (tc.want != nil && !errors.Is(err, tc.want)) {
				t.Errorf("error = %v, want %v saying %q", err, tc.want, tc.says)
			}
			if tc.want != nil && !errors.Is(err, git.ErrRedirect) {
				t.Errorf("error = %v, want ErrRedirect", err)
			}
			noCanary(t, err)
		})
	}
	if n := inner.end(); n > 0 {
		t.Errorf("%d connections were made", n)
	}
}

// TestNothingOfAnSSHAnswerIsShown checks that no error shows a response that is
// not SSH, or a message of an SSH server.
func TestNothingOfAnSSHAnswerIsShown(t *testing.T) {
	f := &fixture{t: t}
	_, identity := newSigner(t)
	for name, answer := range map[string]string{
		"a banner of something else": "220 " + canary + " ESMTP\r\n",
		"a version that is none":     "SSH-1.5-" + canary + "\r\n",
		"no line":                    canary + strings.Repeat("x", 300),
		"a disconnect":               "SSH-2.0-x\r\n" + packet(append([]byte{1, 0, 0, 0, 2, 0, 0, 0, byte(len(canary))}, canary...)),
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				conn, err := l.Accept()
				if err == nil {
					_, _ = conn.Write([]byte(answer))
					_ = conn.(*net.TCPConn).CloseWrite()
					_, _ = io.Copy(io.Discard, conn)
					_ = conn.Close()
				}
			}()
			url := "ssh://git@" + l.Addr().String() + "/app.git"
			known := "h ssh-ed25519 " + someKey
			err = fetchMain(t.Context(), f.remote(url, credentials(t, url, map[string]string{"identity": string(identity), "known_hosts": known}), git.Options{}))
			if err == nil {
				t.Fatal("it was taken for a repository")
			}
			noCanary(t, err)
		})
	}
}

// someKey is the public SSH key of an unknown host.
const someKey = "AAAAC3NzaC1lZDI1NTE5AAAAIHRlc3R0ZXN0dGVzdHRlc3R0ZXN0dGVzdHRlc3R0ZXN0"

// packet frames a message of an SSH server before the key exchange.
func packet(payload []byte) string {
	padding := 8 - (len(payload)+5)%8 + 8
	out := binary.BigEndian.AppendUint32(nil, uint32(len(payload)+padding+1))
	out = append(append(out, byte(padding)), payload...)
	return string(append(out, make([]byte, padding)...))
}
