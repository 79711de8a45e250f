package overview

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/flotilla-io/flotilla/controlplane/disk"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

// What the control plane says of itself beside its answers is the first thing that
// a status shows.
func TestStatusShowsThatNothingIsStored(t *testing.T) {
	env := servertest.New(t)
	transport, err := rest.TransportFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(env.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	notice := disk.Notice + ": its disk has 12Mi free, and it needs 160Mi"
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(address) },
		Transport: transport,
		ModifyResponse: func(r *http.Response) error {
			if notice != "" {
				r.Header.Add("Warning", `299 - "`+notice+`"`)
			}
			return nil
		},
	})
	t.Cleanup(front.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["front"] = &clientcmdapi.Cluster{Server: front.URL}
	config.Contexts["front"] = &clientcmdapi.Context{Cluster: "front"}
	config.CurrentContext = "front"
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	w := &world{env: &servertest.Env{Kubeconfig: kubeconfig}, cache: t.TempDir()}
	said := w.call(t.Context(), "status --check")
	if said.Code == 0 || !strings.Contains(said.Out, notice) || !strings.Contains(said.Out, "make room on the disk") {
		t.Errorf("status on a full disk: %s", said)
	}
	notice = ""
	if said := w.call(t.Context(), "status --check"); said.Code != 0 {
		t.Errorf("status with room again: %s", said)
	}
}
