package fleet

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flotilla-io/flotilla/internal/contexts"
)

// getter is kubectl's RESTClientGetter. Its error for an unknown context lists the existing ones.
type getter struct{ *genericclioptions.ConfigFlags }

func (g getter) explain(err error) error {
	return contexts.Explain(g.ConfigFlags.ToRawKubeConfigLoader(), *g.Context, err)
}

// ToRESTConfig implements genericclioptions.RESTClientGetter.
func (g getter) ToRESTConfig() (*rest.Config, error) {
	config, err := g.ConfigFlags.ToRESTConfig()
	return config, g.explain(err)
}

// ToDiscoveryClient implements genericclioptions.RESTClientGetter.
func (g getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	kinds, err := g.ConfigFlags.ToDiscoveryClient()
	return kinds, g.explain(err)
}

// ToRESTMapper implements genericclioptions.RESTClientGetter.
func (g getter) ToRESTMapper() (meta.RESTMapper, error) {
	mapper, err := g.ConfigFlags.ToRESTMapper()
	return mapper, g.explain(err)
}

// ToRawKubeConfigLoader implements genericclioptions.RESTClientGetter.
func (g getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return loader{g.ConfigFlags.ToRawKubeConfigLoader(), g}
}

// reading is client-go's reader of a kubeconfig.
type reading = clientcmd.ClientConfig

// loader reads a kubeconfig, and explains errors as getter does.
type loader struct {
	reading
	getter getter
}

// ClientConfig implements clientcmd.ClientConfig.
func (l loader) ClientConfig() (*rest.Config, error) {
	config, err := l.reading.ClientConfig()
	return config, l.getter.explain(err)
}

// Namespace implements clientcmd.ClientConfig.
func (l loader) Namespace() (string, bool, error) {
	namespace, given, err := l.reading.Namespace()
	return namespace, given, l.getter.explain(err)
}
