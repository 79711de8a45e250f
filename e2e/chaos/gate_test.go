package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/flotilla-io/flotilla/e2e/chaos/history"
	"github.com/flotilla-io/flotilla/internal/tenure"
)

// contender is a program that competes for the lease, as far as its writes report it.
type contender struct {
	name string

	mu sync.Mutex
	// start counts those of the program: what is stopped for good writes nothing.
	start int
	// renewed is when it last took or renewed the lease of the leader.
	renewed time.Time
}

// again notes that the program is started anew: what comes from now on is of that start.
func (c *contender) again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start++
}

// who names the program, and which start of it.
func (c *contender) who() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%s, start %d", c.name, c.start+1)
}

// renew notes that it has taken or renewed the lease just now.
func (c *contender) renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renewed = time.Now()
}

// lastRenewed is when it last took or renewed the lease.
func (c *contender) lastRenewed() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renewed
}

// gate is the way of loops to a control plane that they run apart from. It keeps which
// of their writes were accepted.
type gate struct {
	contender
	server *httptest.Server
	to     *journal
}

// newGate opens the way of a replica, and writes the kubeconfig that leads through it.
func newGate(t *testing.T, name string, config *rest.Config, dir string, to *journal) (g *gate, kubeconfig string) {
	t.Helper()
	next, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	g = &gate{contender: contender{name: "loops " + name}, to: to}
	g.server = httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Transport:     next,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if r.In.Method != http.MethodGet {
				r.Out.Header.Del("Accept-Encoding") // the answer is read
			}
		},
		ModifyResponse: g.answered,
		// The replica finds what it would without a gate: a connection that breaks.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	g.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	g.server.Config.Handler = g.note(g.server.Config.Handler)
	g.server.EnableHTTP2 = true
	g.server.StartTLS()
	t.Cleanup(g.close)
	kubeconfig = filepath.Join(dir, "gate-"+name+".kubeconfig")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"hub": {Server: g.server.URL, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"loops": {}},
		Contexts:       map[string]*clientcmdapi.Context{"hub": {Cluster: "hub", AuthInfo: "loops"}},
		CurrentContext: "hub",
	}, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return g, kubeconfig
}

// close ends the way. A replica that still runs comes back until nobody listens, and
// Close waits for requests that have begun.
func (g *gate) close() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		g.server.Close()
	}()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		g.server.CloseClientConnections()
		select {
		case <-closed:
			return
		case <-ticker.C:
		}
	}
}

// arrival is how a request carries when it arrived, and from whom.
type arrival struct {
	at time.Time
	by string
}

type arrivalKey struct{}

func (g *gate) note(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		from := arrival{at: time.Now(), by: g.who()}
		next.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), arrivalKey{}, from)))
	})
}

// answered keeps a write that was accepted.
func (g *gate) answered(resp *http.Response) error {
	req := resp.Request
	if req.Method == http.MethodGet || resp.StatusCode >= http.StatusBadRequest {
		return nil
	}
	from, _ := req.Context().Value(arrivalKey{}).(arrival)
	if strings.Contains(req.URL.Path, "/namespaces/"+tenure.Namespace+"/leases") {
		g.renew()
		return nil // the elector's own: who does not hold the lease writes none
	}
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(content))
	var answer struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(content, &answer) // other encodings have no revision for us
	epoch, _ := strconv.ParseInt(req.Header.Get(tenure.Header), 10, 64)
	revision, _ := strconv.ParseInt(answer.Metadata.ResourceVersion, 10, 64)
	g.to.requested(history.Request{
		By: from.by, Epoch: epoch, Revision: revision, What: req.Method + " " + req.URL.Path, Begun: from.at, Ended: time.Now(),
	})
	return nil
}
