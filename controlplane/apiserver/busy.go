package apiserver

import (
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// herald calls busy when a request begins that may change something.
func herald(config *genericapiserver.RecommendedConfig, busy func()) {
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return build(withBusy(handler, busy), c)
	}
}

func withBusy(next http.Handler, busy func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if info, ok := request.RequestInfoFrom(req.Context()); ok && info.IsResourceRequest && changes(info) {
			busy()
		}
		next.ServeHTTP(w, req)
	})
}

// changes reports whether a request may change what others act on. A Lease is renewed by
// those who have nothing to do as well.
func changes(info *request.RequestInfo) bool {
	switch info.Verb {
	case "get", "list", "watch":
		return false
	default:
		return info.APIGroup != coordinationv1.GroupName
	}
}
