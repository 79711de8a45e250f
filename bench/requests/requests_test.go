package requests_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flotilla-io/flotilla/bench/requests"
)

// text is what a control plane exposes, in part.
const text = `# TYPE apiserver_request_total counter
apiserver_request_total{code="200",resource="works",subresource="status",verb="PATCH"} 20
apiserver_request_total{code="409",resource="works",subresource="status",verb="PATCH"} 1
apiserver_request_total{code="201",resource="works",subresource="",verb="POST",scope="resource"} 7
apiserver_request_total{code="201",resource="works",subresource="",verb="POST",scope="namespace"} 3
apiserver_request_total{code="200",resource="leases",subresource="",verb="PUT"} 5
apiserver_request_total{code="200",resource="works",subresource="",verb="LIST"} 99
apiserver_request_total{code="0",resource="works",subresource="",verb="WATCH"} 99
`

func TestRead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
	defer server.Close()
	hub, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	all, err := requests.Read(t.Context(), hub.RESTClient())
	if err != nil {
		t.Fatal(err)
	}
	since := all.Since(requests.Counts{"POST works 201": 4, "PUT leases 200": 5})
	want := []requests.Write{{"PATCH works/status", 20}, {"POST works", 6}}
	if diff := cmp.Diff(want, since.Writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if share, number := since.Conflicts(); number != 1 || share != 1.0/27 {
		t.Errorf("%g conflicts, %g of the writes", number, share)
	}
}
