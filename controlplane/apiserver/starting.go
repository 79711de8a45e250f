package apiserver

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// awaitStart rejects all but clients inside this process until up is closed. The store may
// be a copy, or from a backup: what it holds about the control plane is outdated until that has
// written it again. And no caller gets a Forbidden only because RBAC rules are not
// created yet.
func awaitStart(config *genericapiserver.RecommendedConfig, up <-chan struct{}) {
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return waiting(build(handler, c), up, c.LoopbackClientConfig.BearerToken)
	}
}

// always reports whether a path is answered while the control plane starts.
func always(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return slices.Contains([]string{"healthz", "livez", "readyz", "version"}, first)
}

// waiting passes on requests with the loopback token, and all once up is closed.
func waiting(next http.Handler, up <-chan struct{}, token string) http.Handler {
	own := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		select {
		case <-up:
		default:
			inside := token != "" && subtle.ConstantTimeCompare([]byte(req.Header.Get("Authorization")), own) == 1
			if !inside && !always(req.URL.Path) {
				comeAgain(w)
				return
			}
		}
		next.ServeHTTP(w, req)
	})
}

// comeAgain answers that the control plane is starting. Kubernetes' clients retry a
// second later by themselves.
func comeAgain(w http.ResponseWriter) {
	status := apierrors.NewServiceUnavailable("the control plane is starting: try again in some seconds").Status()
	status.Kind, status.APIVersion = "Status", metav1.SchemeGroupVersion.Version
	status.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(status) // who asked may have gone
}
