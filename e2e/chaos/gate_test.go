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

// gate is the way of a replica's loops to the control plane. It keeps which of their
// writes were accepted.
type gate struct {
	name   string
	server *httptest.Server
	to     *journal

	mu sync.Mutex
	// start counts those of the replica: what is stopped for good writes nothing.
	start int
	// renewed is when the replica last took or renewed the lease of the leader.
	renewed time.Time
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
	g = &gate{name: name, to: to}
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
	t.Cleanup(func() {
		g.server.CloseClientConnections()
		g.server.Close()
	})
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

// again notes that the replica is started anew: what comes from now on is of that start.
func (g *gate) again() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.start++
}

// lastRenewed is when the replica last took or renewed the lease.
func (g *gate) lastRenewed() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.renewed
}

// arrival is how a request carries when it arrived, and from whom.
type arrival struct {
	at time.Time
	by string
}

type arrivalKey struct{}

func (g *gate) note(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		g.mu.Lock()
		from := arrival{at: time.Now(), by: fmt.Sprintf("loops %s, start %d", g.name, g.start+1)}
		g.mu.Unlock()
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
		g.mu.Lock()
		defer g.mu.Unlock()
		g.renewed = time.Now()
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
