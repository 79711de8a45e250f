package apiserver

import (
	"net/http"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// Around wraps the whole handler chain.
type Around interface {
	// Authorize returns an authorizer, given the default one.
	// Access reviews are answered by the default one.
	Authorize(next authorizer.Authorizer) authorizer.Authorizer
	// Handle returns a handler of authorized requests, given the default
	// otherwise.
	Handle(next http.Handler) http.Handler
}

// surround wraps the chain with around.
func surround(config *genericapiserver.RecommendedConfig, around Around) {
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		own := *c
		own.Authorization.Authorizer = around.Authorize(c.Authorization.Authorizer)
		return build(around.Handle(handler), &own)
	}
}
