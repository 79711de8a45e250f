package apiserver

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/tools/cache"

	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// lasting are the requests of agents that are under way: a watch would go on for as long
// as it asked for, also when its certificate counts no more.
type lasting struct {
	agents *agents

	mu   sync.Mutex
	open map[string]map[*underWay]struct{} // by cluster
}

// underWay is one request.
type underWay struct {
	certificate *x509.Certificate
	cancel      context.CancelFunc
}

// endWithRegistration ends what agents have open when their cluster is registered anew,
// or has left.
func endWithRegistration(config *genericapiserver.RecommendedConfig, roles cache.SharedIndexInformer, known *agents) error {
	l := &lasting{agents: known, open: map[string]map[*underWay]struct{}{}}
	_, err := roles.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, obj any) { l.judge(obj, false) },
		DeleteFunc: func(obj any) { l.judge(obj, true) },
	})
	if err != nil {
		return fmt.Errorf("follow the roles of agents: %w", err)
	}
	build := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return build(l.follow(handler), c)
	}
	return nil
}

// follow has requests of agents end when they are to. Others pass as they are.
func (l *lasting) follow(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		certificate := presented(req)
		who, known := request.UserFrom(req.Context())
		if certificate == nil || !known {
			next.ServeHTTP(w, req)
			return
		}
		cluster, isAgent := identity.ClusterOfAgent(who.GetName())
		if !isAgent || certificate.Subject.CommonName != who.GetName() { // an administrator in its name
			next.ServeHTTP(w, req)
			return
		}
		ctx, cancel := context.WithCancel(req.Context())
		defer cancel()
		one := &underWay{certificate: certificate, cancel: cancel}
		l.add(cluster, one)
		defer l.drop(cluster, one)
		if _, err := l.agents.current(cluster, certificate); err != nil {
			cancel() // it was registered anew since it was let in
		}
		next.ServeHTTP(w, req.WithContext(ctx))
	})
}

func (l *lasting) add(cluster string, one *underWay) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[cluster] == nil {
		l.open[cluster] = map[*underWay]struct{}{}
	}
	l.open[cluster][one] = struct{}{}
}

func (l *lasting) drop(cluster string, one *underWay) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open[cluster], one)
	if len(l.open[cluster]) == 0 {
		delete(l.open, cluster)
	}
}

// judge ends what a cluster's agents have open by certificates that count no more; all
// of it if the role is gone.
func (l *lasting) judge(obj any, gone bool) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	role, ok := obj.(*rbacv1.ClusterRole)
	if !ok {
		return
	}
	cluster, ok := identity.ClusterOfRole(role.Name)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.open[cluster] {
		if _, err := l.agents.current(cluster, one.certificate); gone || err != nil {
			one.cancel()
		}
	}
}
