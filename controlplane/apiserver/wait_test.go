package apiserver

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// answers are those that a server gives, one after the other.
type answers []http.Response

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	next := (*a)[0]
	*a = (*a)[1:]
	next.Body = io.NopCloser(bytes.NewReader(nil))
	return &next, nil
}

// TestAServerIsReadyOnceItSaysSo: one that is asked before its paths are there has clients
// come again much later, which is no word about when it will be ready.
func TestAServerIsReadyOnceItSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		later := http.Header{"Retry-After": {"5"}}
		server := &answers{
			{StatusCode: http.StatusServiceUnavailable, Header: later},
			{StatusCode: http.StatusInternalServerError},
			{StatusCode: http.StatusOK},
		}
		hub, err := kubernetes.NewForConfig(&rest.Config{Host: "http://hub", Transport: server, QPS: -1})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := waitReady(t.Context(), hub.RESTClient(), nil); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 2*pollEvery {
			t.Errorf("found ready after %s, want %s", took, 2*pollEvery)
		}
	})
}
