package apiserver

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	definitions "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/flotilla-io/flotilla/controlplane/datadir"
	"github.com/flotilla-io/flotilla/controlplane/pki"
)

const (
	// DefaultServiceCIDR is where cluster IPs of Services come from.
	DefaultServiceCIDR = "10.96.0.0/16"
	// Issuer is the issuer and audience of service-account tokens.
	Issuer = "https://kubernetes.default.svc.cluster.local"
	// systemMasters is the group that may do everything.
	systemMasters = "system:masters"
)

// Options configure a server. PKI, DataDir and Etcd.Servers are
// required.
type Options struct {
	// DataDir is the folder for the server's own settings.
	DataDir string
	// PKI makes the server's certificates and keys, and holds the CA
	// that verifies clients.
	PKI *pki.Store
	// Etcd is where the server stores its objects.
	Etcd Etcd
	// BindAddress is the IP address to listen on; empty means 127.0.0.1.
	BindAddress string
	// SecurePort is the port to listen on; 0 means a free one.
	SecurePort int
	// Hosts are further names and addresses that the serving certificate covers.
	Hosts []string
	// ServiceCIDR is the range of cluster IPs; empty means DefaultServiceCIDR.
	ServiceCIDR string
	// DisableAdmission names default admission plugins to leave out.
	DisableAdmission []string
	// Admission are plugins of ours; they run in this order, after the
	// built-in ones and before the webhooks, but for those that are Last.
	Admission []Plugin
	// Extension serves further kinds and paths; nil serves none.
	Extension *Extension
	// ExpiredAgents is how long after it has expired an agent's certificate
	// may still request the next one; zero: the server has no agents.
	ExpiredAgents time.Duration
	// ReadyChecks are further conditions of /readyz; WaitServing ignores them.
	ReadyChecks []healthz.HealthChecker
	// Requests configure what else is done with each request.
	Requests Requests
	// Pages are further paths, for those who may read them; nil: none.
	Pages map[string]http.Handler
	// FeatureGates are set for the whole process, over ours and upstream's
	// defaults.
	FeatureGates map[string]bool
}

// Requests configure what else is done with each request. The zero value does nothing.
type Requests struct {
	// Notice is sent as a warning with each answer about objects,
	// but for clients inside this process; empty shows nothing, as does nil.
	Notice func() string
	// Busy is called when a request begins that may change anything but a Lease; it must not
	// block. Nil is not called.
	Busy func()
	// Up is closed once all clients are served: until then, only clients inside this process are
	// answered, and health checks. Nil serves all from the start.
	Up <-chan struct{}
}

// Etcd is how to reach a store.
type Etcd struct {
	// Servers are the store's URLs.
	Servers []string
	// Prefix is the path of all keys; empty means /registry.
	Prefix string
	// CAFile, CertFile and KeyFile are for stores that speak TLS.
	CAFile, CertFile, KeyFile string
}

// A Plugin is an admission plugin that runs inside the server.
type Plugin struct {
	// Name is unique among all plugins, ours and upstream's.
	Name string
	// Interface admits or validates. It may implement the Wants… interfaces of upstream's plugins, and
	// WantsDefinitions.
	Interface admission.Interface
	// Last makes it run after the webhooks: a quota counts only what no webhook refuses.
	Last bool
}

// WantsDefinitions is a plugin that needs the custom resources that are defined.
type WantsDefinitions interface {
	SetDefinitions(all definitions.CustomResourceDefinitionLister)
}

// featureGates are what every server of ours sets differently from upstream:
// one process is the only server of its store, so it neither keeps a lease that
// names it, which would be a write every ten seconds, nor looks for peers.
var featureGates = map[string]bool{
	"APIServerIdentity":                   false,
	"UnknownVersionInteroperabilityProxy": false,
}

// anonymousPaths are all that callers without credentials may ask for, should
// RBAC let them: health, and what an agent needs to join by a bootstrap token.
var anonymousPaths = []string{
	"/healthz", "/livez", "/readyz", "/version",
	"/api/v1/namespaces/kube-public/configmaps/cluster-info",
}

func (o *Options) validate() error {
	switch {
	case o.DataDir == "":
		return errors.New("no data directory")
	case o.PKI == nil:
		return errors.New("no certificates")
	case len(o.Etcd.Servers) == 0:
		return errors.New("no etcd servers")
	case o.BindAddress != "" && net.ParseIP(o.BindAddress) == nil:
		return fmt.Errorf("bind address %q is not an IP address", o.BindAddress)
	}
	return nil
}

// complete turns the options into upstream's, with an open listener.
func (o *Options) complete() (*options.ServerRunOptions, error) {
	if o.BindAddress == "" {
		o.BindAddress = "127.0.0.1"
	}
	if o.ServiceCIDR == "" {
		o.ServiceCIDR = DefaultServiceCIDR
	}
	run := options.NewServerRunOptions()
	run.ServiceClusterIPRanges = o.ServiceCIDR
	run.AllowPrivileged = true // whether pods may run privileged is decided by the cluster that runs them
	run.EndpointReconcilerType = "none"
	run.Metrics = nil // all metrics are shown; upstream's defaults would log an error of a file that is not set
	run.GenericServerRunOptions.AdvertiseAddress = o.advertised()
	run.GenericServerRunOptions.ExternalHost = run.GenericServerRunOptions.AdvertiseAddress.String()
	o.store(run)
	o.admission(run)
	if err := errors.Join(o.certificates(run), o.authentication(run)); err != nil {
		return nil, err
	}
	return run, o.listen(run)
}

// advertised is the address in the server's own URLs.
func (o *Options) advertised() net.IP {
	ip := net.ParseIP(o.BindAddress)
	if ip.IsUnspecified() {
		return net.IPv4(127, 0, 0, 1)
	}
	return ip
}

func (o *Options) store(run *options.ServerRunOptions) {
	config := &run.Etcd.StorageConfig
	config.Transport.ServerList = o.Etcd.Servers
	config.Transport.TrustedCAFile = o.Etcd.CAFile
	config.Transport.CertFile = o.Etcd.CertFile
	config.Transport.KeyFile = o.Etcd.KeyFile
	if o.Etcd.Prefix != "" {
		config.Prefix = o.Etcd.Prefix
	}
}

func (o *Options) admission(run *options.ServerRunOptions) {
	generic := run.Admission.GenericAdmission
	generic.DisablePlugins = o.DisableAdmission
	var names, last []string
	for _, p := range o.Admission {
		generic.Plugins.Register(p.Name, admissionFactory(p.Interface))
		if p.Last {
			last = append(last, p.Name)
			continue
		}
		names = append(names, p.Name)
	}
	before := slices.Index(generic.RecommendedPluginOrder, "MutatingAdmissionPolicy")
	generic.RecommendedPluginOrder = append(slices.Insert(slices.Clone(generic.RecommendedPluginOrder), before, names...), last...)
}

func (o *Options) certificates(run *options.ServerRunOptions) error {
	serving, err := o.PKI.Server("apiserver", o.hosts()...)
	if err != nil {
		return err
	}
	proxy, err := o.PKI.FrontProxyClient("front-proxy-client")
	if err != nil {
		return err
	}
	kubelet, err := o.PKI.Client("kubelet-client", pki.Identity{User: "kube-apiserver-kubelet-client", Groups: []string{systemMasters}})
	if err != nil {
		return err
	}
	run.SecureServing.ServerCert.CertKey.CertFile = serving
	run.SecureServing.ServerCert.CertKey.KeyFile = serving
	run.ProxyClientCertFile, run.ProxyClientKeyFile = proxy, proxy
	run.KubeletConfig.TLSClientConfig.CertFile = kubelet
	run.KubeletConfig.TLSClientConfig.KeyFile = kubelet
	run.KubeletConfig.TLSClientConfig.CAFile = o.PKI.CAFile()
	run.KubeletConfig.PreferredAddressTypes = []string{"InternalIP", "ExternalIP"} // nodes' names are not resolvable
	return nil
}

// hosts are all names and addresses by which clients may know the server.
func (o *Options) hosts() []string {
	hosts := []string{
		"localhost", "127.0.0.1", "::1",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
	if ip := net.ParseIP(o.BindAddress); !ip.IsUnspecified() {
		hosts = append(hosts, o.BindAddress)
	}
	if _, cidr, err := net.ParseCIDR(o.ServiceCIDR); err == nil { // a bad range is refused by upstream's own check
		first := slices.Clone(cidr.IP)
		first[len(first)-1]++
		hosts = append(hosts, first.String())
	}
	return append(hosts, o.Hosts...)
}

func (o *Options) authentication(run *options.ServerRunOptions) error {
	auth := run.Authentication
	auth.ClientCert.ClientCA = o.PKI.CAFile()
	auth.BootstrapToken.Enable = true
	auth.RequestHeader.ClientCAFile = o.PKI.FrontProxyCAFile()
	auth.RequestHeader.AllowedNames = []string{"front-proxy-client"}
	auth.RequestHeader.UsernameHeaders = []string{"X-Remote-User"}
	auth.RequestHeader.UIDHeaders = []string{"X-Remote-Uid"}
	auth.RequestHeader.GroupHeaders = []string{"X-Remote-Group"}
	auth.RequestHeader.ExtraHeaderPrefixes = []string{"X-Remote-Extra-"}
	auth.ServiceAccounts.Issuers = []string{Issuer}
	auth.ServiceAccounts.KeyFiles = []string{o.PKI.ServiceAccountPublicKeyFile()}
	auth.APIAudiences = []string{Issuer}
	run.ServiceAccountSigningKeyFile = o.PKI.ServiceAccountKeyFile()
	run.Authorization.Modes = []string{"Node", "RBAC"}
	auth.AuthenticationConfigFile = filepath.Join(o.DataDir, "authentication.yaml")
	_, err := datadir.WriteFile(auth.AuthenticationConfigFile, anonymousConfig())
	return err
}

func anonymousConfig() []byte {
	content := []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous:\n  enabled: true\n  conditions:\n")
	for _, path := range anonymousPaths {
		content = append(content, "  - path: "+path+"\n"...)
	}
	return content
}

func (o *Options) listen(run *options.ServerRunOptions) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(o.BindAddress, strconv.Itoa(o.SecurePort)))
	if err != nil {
		return err
	}
	run.SecureServing.Listener = listener
	run.SecureServing.BindAddress = net.ParseIP(o.BindAddress)
	run.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port
	return nil
}
