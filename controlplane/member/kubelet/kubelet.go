package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

// Options say how the server is reached. All but Clock are required.
type Options struct {
	// Listener is where the API server finds it.
	Listener net.Listener
	// CertFile holds its certificate and key. It is read for each connection.
	CertFile string
	// CAFile holds the certificates that clients' are signed by.
	CAFile string
	// Clock is the time; nil means the machine's.
	Clock clock.WithTicker
}

// container is one of a pod.
type container struct{ namespace, pod, name string }

func containerOf(req *http.Request) container {
	return container{namespace: req.PathValue("namespace"), pod: req.PathValue("pod"), name: req.PathValue("container")}
}

// server answers for all containers.
type server struct{ clock clock.WithTicker }

// Run serves until ctx ends.
func Run(ctx context.Context, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	trusted, err := os.ReadFile(o.CAFile)
	if err != nil {
		return fmt.Errorf("kubelet: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(trusted) {
		return errors.New("kubelet: no certificates to know clients by")
	}
	s := &server{clock: o.Clock}
	serving := &http.Server{
		Handler: s.handler(),
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
			ClientAuth: tls.RequireAndVerifyClientCert,
			ClientCAs:  pool,
			NextProtos: []string{"http/1.1"}, // connections become streams
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				pair, err := tls.LoadX509KeyPair(o.CertFile, o.CertFile)
				return &pair, err
			},
		},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = serving.Close() })
	defer stop()
	if err := serving.ServeTLS(o.Listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("kubelet: %w", err)
	}
	return nil
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.logs)
	for _, method := range []string{"GET", "POST"} {
		mux.HandleFunc(method+" /exec/{namespace}/{pod}/{container}", s.exec)
		mux.HandleFunc(method+" /attach/{namespace}/{pod}/{container}", s.attach)
		mux.HandleFunc(method+" /portForward/{namespace}/{pod}", forward)
	}
	return mux
}

// lines are what a container has logged.
func (c container) lines() []string {
	return []string{
		fmt.Sprintf("container %s of pod %s/%s started", c.name, c.namespace, c.pod),
		fmt.Sprintf("container %s of pod %s/%s is simulated and does nothing", c.name, c.namespace, c.pod),
	}
}

// beat is how often a container logs while somebody follows.
const beat = time.Second

// logs writes what a container has logged, and goes on where it is followed.
func (s *server) logs(w http.ResponseWriter, req *http.Request) {
	c, query := containerOf(req), req.URL.Query()
	lines := c.lines()
	if tail, err := strconv.Atoi(query.Get("tailLines")); err == nil && tail >= 0 && tail < len(lines) {
		lines = lines[len(lines)-tail:]
	}
	stamp := func() string {
		if query.Get("timestamps") != "true" {
			return ""
		}
		return s.clock.Now().UTC().Format(time.RFC3339Nano) + " "
	}
	w.Header().Set("Content-Type", "text/plain")
	for _, line := range lines {
		_, _ = io.WriteString(w, stamp()+line+"\n")
	}
	if query.Get("follow") != "true" {
		return
	}
	control := http.NewResponseController(w)
	tick := s.clock.NewTicker(beat)
	defer tick.Stop()
	for n := 1; ; n++ {
		if control.Flush() != nil {
			return
		}
		select {
		case <-req.Context().Done():
			return
		case <-tick.C():
			if _, err := fmt.Fprintf(w, "%sstill here (%d)\n", stamp(), n); err != nil {
				return
			}
		}
	}
}

// exec runs a command that is known.
func (s *server) exec(w http.ResponseWriter, req *http.Request) {
	c, command := containerOf(req), req.URL.Query()["command"]
	stream(w, req, func(in io.Reader, out, errOut io.Writer) int { return c.run(command, in, out, errOut) })
}

// attach writes what the container has logged, and returns what it reads.
func (s *server) attach(w http.ResponseWriter, req *http.Request) {
	c := containerOf(req)
	stream(w, req, func(in io.Reader, out, _ io.Writer) int {
		_, _ = io.WriteString(out, strings.Join(c.lines(), "\n")+"\n")
		_, _ = io.Copy(out, in)
		return 0
	})
}
