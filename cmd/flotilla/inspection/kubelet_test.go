package inspection_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/controlplane/pki"
)

// kubelet gives the node of the member, which only says that it runs pods, what
// logs, exec, attach and port-forward need of a machine.
func (w *world) kubelet(t *testing.T) {
	t.Helper()
	store, err := pki.Open(filepath.Join(w.dir, "pki"), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := store.Server("kubelet", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", serveLogs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", serveExec)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", serveAttach)
	mux.HandleFunc("/portForward/{namespace}/{pod}", servePorts)
	server := httptest.NewUnstartedServer(mux)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	eventually(t, "give the node a kubelet", func(ctx context.Context) error {
		node := &corev1.Node{}
		if err := w.own.Get(ctx, client.ObjectKey{Name: "east-node-1"}, node); err != nil {
			return err
		}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
		node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(server.Listener.Addr().(*net.TCPAddr).Port)
		return w.own.Status().Update(ctx, node)
	})
}

// serveLogs writes two lines; a client that follows then waits.
func serveLogs(w http.ResponseWriter, r *http.Request) {
	_, _ = fmt.Fprintf(w, "%s of %s begins\nand works\n", r.PathValue("container"), r.PathValue("pod"))
	if r.URL.Query().Get("follow") == "true" {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// session is a connection with its streams by type.
type session struct {
	conn    httpstream.Connection
	streams map[string]httpstream.Stream
}

// accept waits until the streams are there that a command has.
func accept(w http.ResponseWriter, r *http.Request) (*session, bool) {
	if _, err := httpstream.Handshake(r, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		return nil, false
	}
	query := r.URL.Query()
	want := 1
	for _, name := range []string{"input", "output", "error"} {
		if query.Get(name) == "1" {
			want++
		}
	}
	opened := make(chan httpstream.Stream, want+1)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		opened <- stream
		return nil
	})
	if conn == nil {
		return nil, false
	}
	s := &session{conn: conn, streams: map[string]httpstream.Stream{}}
	for len(s.streams) < want {
		select {
		case stream := <-opened:
			s.streams[stream.Headers().Get(corev1.StreamType)] = stream
		case <-conn.CloseChan():
			return nil, false
		}
	}
	return s, true
}

// end reports an exit code and closes.
func (s *session) end(code int) {
	status := metav1.Status{Status: metav1.StatusSuccess}
	if code != 0 {
		status = metav1.Status{Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason, Message: fmt.Sprintf("command terminated with exit code %d", code), Details: &metav1.StatusDetails{
			Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: fmt.Sprint(code)}},
		}}
	}
	_ = json.NewEncoder(s.streams[corev1.StreamTypeError]).Encode(status)
	for _, stream := range s.streams {
		_ = stream.Close()
	}
	_ = s.conn.Close()
}

// serveExec knows echo, cat, fail and wait.
func serveExec(w http.ResponseWriter, r *http.Request) {
	s, ok := accept(w, r)
	if !ok {
		return
	}
	words, code := r.URL.Query()["command"], 0
	switch words[0] {
	case "echo":
		_, _ = fmt.Fprintln(s.streams[corev1.StreamTypeStdout], strings.Join(words[1:], " "))
	case "cat":
		_, _ = io.Copy(s.streams[corev1.StreamTypeStdout], s.streams[corev1.StreamTypeStdin])
	case "wait":
		_, _ = fmt.Fprintln(s.streams[corev1.StreamTypeStdout], "waiting")
		<-s.conn.CloseChan()
		return
	default:
		_, _ = fmt.Fprintln(s.streams[corev1.StreamTypeStderr], "no such command")
		code = 3
	}
	s.end(code)
}

func serveAttach(w http.ResponseWriter, r *http.Request) {
	if s, ok := accept(w, r); ok {
		_, _ = fmt.Fprintln(s.streams[corev1.StreamTypeStdout], r.PathValue("container"), "says hello")
		s.end(0)
	}
}

// servePorts sends back what comes.
func servePorts(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return
	}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, replied <-chan struct{}) error {
		go func() {
			<-replied
			if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
				_, _ = io.Copy(stream, stream)
			}
			_ = stream.Close()
		}()
		return nil
	})
	if conn != nil {
		<-conn.CloseChan()
	}
}
