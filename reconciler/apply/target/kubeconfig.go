package target

import (
	"errors"
	"fmt"
	"net/url"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Parse returns the connection that the current context of a kubeconfig describes. Errors name what is not allowed in a kubeconfig
// that others have written, and what to write instead: what runs a program, is read from a file, or turns off the verification of
// TLS. It reads nothing but its argument.
func Parse(raw []byte) (*rest.Config, error) {
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, errors.New("it is no kubeconfig: write one, as kubectl config view --raw --minify --flatten does")
	}
	if config.CurrentContext == "" {
		return nil, errors.New("current-context is missing: name the context to use")
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil {
		return nil, fmt.Errorf("current-context is %q, and there is no such context: correct one of them", config.CurrentContext)
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	switch {
	case cluster == nil:
		return nil, fmt.Errorf("the context %q names the cluster %q, and there is no such cluster: correct one of them", config.CurrentContext, context.Cluster)
	case user == nil:
		return nil, fmt.Errorf("the context %q names the user %q, and there is no such user: correct one of them", config.CurrentContext, context.AuthInfo)
	}
	server, err := serverOf(cluster)
	if err == nil {
		err = refusedOf(ofCluster(cluster), ofUser(user))
	}
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: server.String(), BearerToken: user.Token, Username: user.Username, Password: user.Password,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: cluster.TLSServerName, CAData: cluster.CertificateAuthorityData,
			CertData: user.ClientCertificateData, KeyData: user.ClientKeyData,
		},
		Impersonate: rest.ImpersonationConfig{UserName: user.Impersonate, UID: user.ImpersonateUID, Groups: user.ImpersonateGroups, Extra: user.ImpersonateUserExtra},
	}, nil
}

// serverOf returns the address of a cluster.
func serverOf(cluster *clientcmdapi.Cluster) (*url.URL, error) {
	server, err := url.Parse(cluster.Server)
	switch {
	case err != nil || server.Hostname() == "":
		return nil, errors.New("cluster.server is no address: write one such as https://cluster.example.com:6443")
	case server.Scheme != "https":
		return nil, errors.New("cluster.server is no https:// address, so that anybody on the way could read the credentials: use https://")
	case server.User != nil || server.RawQuery != "" || server.Fragment != "":
		return nil, errors.New("cluster.server has more than host, port and path: leave the rest out, and put credentials into the user")
	}
	return server, nil
}

// field is one that is not allowed, if it is set, and what to do instead.
type field struct {
	name    string
	set     bool
	instead string
}

func ofCluster(cluster *clientcmdapi.Cluster) []field {
	return []field{
		{"cluster.certificate-authority", cluster.CertificateAuthority != "", "no file is read: put its content into certificate-authority-data, as base64"},
		{"cluster.insecure-skip-tls-verify", cluster.InsecureSkipTLSVerify, "anybody on the way could take the credentials: put the authority into certificate-authority-data, or set tls-server-name"},
		{"cluster.proxy-url", cluster.ProxyURL != "", "the way there is the control plane's: an administrator can name a proxy in its environment"},
	}
}

func ofUser(user *clientcmdapi.AuthInfo) []field {
	const inline = "put a token into token, or a certificate into client-certificate-data and client-key-data"
	return []field{
		{"user.exec", user.Exec != nil, "no program is run for a kubeconfig: " + inline},
		{"user.auth-provider", user.AuthProvider != nil, "no program is run for a kubeconfig: " + inline},
		{"user.client-certificate", user.ClientCertificate != "", "no file is read: put its content into client-certificate-data, as base64"},
		{"user.client-key", user.ClientKey != "", "no file is read: put its content into client-key-data, as base64"},
		{"user.tokenFile", user.TokenFile != "", "no file is read: put its content into token"},
	}
}

// refusedOf returns an error about the first of the fields that is set.
func refusedOf(fields ...[]field) error {
	for _, f := range slices.Concat(fields...) {
		if f.set {
			return fmt.Errorf("%s is not allowed, as %s", f.name, f.instead)
		}
	}
	return nil
}
