package registration

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
)

// hubExtension names the part of the document that describes a control plane which
// says who that is.
const hubExtension = "flotilla.io/hub"

type hubIdentity struct {
	UID string `json:"uid"`
}

// Extensions are what the document says of a control plane beyond its address and its
// authority, in the form of a kubeconfig.
func Extensions(identity string) map[string]runtime.Object {
	content, err := json.Marshal(hubIdentity{identity})
	if err != nil {
		panic(err) // a string always encodes
	}
	return map[string]runtime.Object{hubExtension: &runtime.Unknown{Raw: content, ContentType: runtime.ContentTypeJSON}}
}

// Identity returns the identity of the control plane that Discover found, as its
// document says: what a member's claim is compared with before the token is used for
// anything. It is empty where the document does not say it.
func Identity(ctx context.Context, hub *rest.Config) (string, error) {
	info, err := clusterInfo(ctx, rest.AnonymousClientConfig(hub))
	if err != nil {
		return "", Explain(err, hub.Host)
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
