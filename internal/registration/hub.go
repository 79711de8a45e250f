package registration

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
)

// hubExtension is the extension of the document that describes a control plane
// which has its identity.
const hubExtension = "flotilla.io/hub"

type hubIdentity struct {
	UID string `json:"uid"`
}

// Extensions returns what the document has about a control plane beyond its
// address and its CA, as extensions of a kubeconfig.
func Extensions(identity string) map[string]runtime.Object {
	content, err := json.Marshal(hubIdentity{identity})
	if err != nil {
		panic(err) // cannot happen: strings always encode
	}
	return map[string]runtime.Object{hubExtension: &runtime.Unknown{Raw: content, ContentType: runtime.ContentTypeJSON}}
}

// Identity returns the identity of the control plane that Discover found, from
// its document. A member's claim is compared with it before the token is used. It
// is empty where the document has none.
func Identity(ctx context.Context, hub *rest.Config) (string, error) {
	info, err := clusterInfo(ctx, rest.AnonymousClientConfig(hub))
	if err != nil {
		return "", explain(err, hub.Host)
	}
	config, err := clientcmd.Load([]byte(info.Data[bootstrapapi.KubeConfigKey]))
	if err != nil {
		return "", nil //nolint:nilerr // it was read before
	}
	for _, cluster := range config.Clusters {
		extension, ok := cluster.Extensions[hubExtension].(*runtime.Unknown)
		is := hubIdentity{}
		if ok && json.Unmarshal(extension.Raw, &is) == nil {
			return is.UID, nil
		}
	}
	return "", nil
}
