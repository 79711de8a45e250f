package apiserver

import (
	"net/http"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// Around stands between clients and the whole chain.
type Around interface {
	// Authorize returns what says who may do what, given what says it otherwise.
	// Nobody else hears of it: what is asked by reviews is as without it.
	Authorize(next authorizer.Authorizer) authorizer.Authorizer
	// Handle returns what answers requests that are allowed, given what answers them
	// otherwise.
	Handle(next http.Handler) http.Handler
}

// surround puts around around the chain.
func surround(config *genericapiserver.RecommendedConfig, around Around) {
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		own := *c
		own.Authorization.Authorizer = around.Authorize(c.Authorization.Authorizer)
		return build(around.Handle(handler), &own)
	}
}
