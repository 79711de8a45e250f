package apiserver

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/warning"
)

// report adds a warning to the answers about objects, of the whole chain, while there is
// one. Answers about kinds and schemas go without: clients keep that answer with its
// headers, and would show the warning long after it is over.
func report(config *genericapiserver.RecommendedConfig, notice func() string) {
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return build(withNotice(handler, notice), c)
	}
}

func withNotice(next http.Handler, notice func() string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		who, known := request.UserFrom(req.Context())
		about, parsed := request.RequestInfoFrom(req.Context())
		if text := notice(); text != "" && known && who.GetName() != user.APIServerUser && parsed && about.IsResourceRequest {
			warning.AddWarning(req.Context(), "", text)
		}
		next.ServeHTTP(w, req)
	})
}
