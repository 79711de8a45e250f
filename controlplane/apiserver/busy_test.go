package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// TestBusy: what may change something is reported, and no looks, health checks and renewals
// of Leases.
func TestBusy(t *testing.T) {
	for name, tc := range map[string]struct {
		info request.RequestInfo
		want bool
	}{
		"an object is made":                   {request.RequestInfo{IsResourceRequest: true, Verb: "create", APIGroup: "apps", Resource: "deployments"}, true},
		"one is applied":                      {request.RequestInfo{IsResourceRequest: true, Verb: "patch", Resource: "configmaps"}, true},
		"a status is written":                 {request.RequestInfo{IsResourceRequest: true, Verb: "update", APIGroup: "work.karmada.io", Resource: "works", Subresource: "status"}, true},
		"many go":                             {request.RequestInfo{IsResourceRequest: true, Verb: "deletecollection", Resource: "secrets"}, true},
		"a list":                              {request.RequestInfo{IsResourceRequest: true, Verb: "list", Resource: "pods"}, false},
		"an agent that watches":               {request.RequestInfo{IsResourceRequest: true, Verb: "watch", APIGroup: "work.karmada.io", Resource: "works"}, false},
		"an agent that says that it is there": {request.RequestInfo{IsResourceRequest: true, Verb: "update", APIGroup: "coordination.k8s.io", Resource: "leases"}, false},
		"a question of health":                {request.RequestInfo{Verb: "get", Path: "/readyz"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var busy, served bool
			next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true })
			req := httptest.NewRequestWithContext(request.WithRequestInfo(t.Context(), &tc.info), http.MethodPost, "/", nil)
			withBusy(next, func() { busy = true }).ServeHTTP(httptest.NewRecorder(), req)
			if busy != tc.want || !served {
				t.Errorf("busy is %v, want %v; served is %v", busy, tc.want, served)
			}
		})
	}
}
