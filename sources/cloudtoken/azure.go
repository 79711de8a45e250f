package cloudtoken

import (
	"fmt"
	"net/url"
	"regexp"
	"time"

	"sigs.k8s.io/yaml"
)

// Servers that give out tokens of Azure's clouds.
const (
	AzurePublic     = "https://login.microsoftonline.com"
	AzureChina      = "https://login.partner.microsoftonline.cn"
	AzureGovernment = "https://login.microsoftonline.us"
)

var azureTenant = regexp.MustCompile(`^[A-Za-z0-9.-]{1,100}$`)

// AzureApplication is how an application of Azure logs in. It prints as a fixed word.
type AzureApplication struct {
	Tenant string `json:"tenantId"`
	Client string `json:"clientId"`
	Secret string `json:"clientSecret"`
	// Certificate is another way, which is refused.
	Certificate string `json:"clientCertificate"`
}

// String returns a fixed text, so that the content is not printed.
func (AzureApplication) String() string { return "(login)" }

// GoString returns a fixed text, so that the content is not printed.
func (AzureApplication) GoString() string { return "(login)" }

// ParseAzure reads how an application logs in: YAML in Flux's format, or what the command line of Azure prints. Errors: ErrLogin.
func ParseAzure(text []byte) (AzureApplication, error) {
	var in AzureApplication
	var ofLine struct {
		Tenant string `json:"tenant"`
		Client string `json:"appId"`
		Secret string `json:"password"`
	}
	if yaml.Unmarshal(text, &in) != nil || yaml.Unmarshal(text, &ofLine) != nil {
		return AzureApplication{}, fmt.Errorf("%w: it is no YAML with tenantId, clientId and clientSecret", ErrLogin)
	}
	if in.Tenant == "" && in.Client == "" {
		in.Tenant, in.Client, in.Secret = ofLine.Tenant, ofLine.Client, ofLine.Secret
	}
	return in, in.check()
}

func (a AzureApplication) check() error {
	switch {
	case a.Certificate != "":
		return fmt.Errorf("%w: a clientCertificate is not supported: use a clientSecret", ErrLogin)
	case !azureTenant.MatchString(a.Tenant), a.Client == "", a.Secret == "":
		return fmt.Errorf("%w: it takes tenantId, clientId and clientSecret", ErrLogin)
	}
	return nil
}

// At returns the Login at a server for tokens with a scope. Errors: ErrLogin.
func (a AzureApplication) At(server, scope string) (Login, error) {
	if err := a.check(); err != nil {
		return Login{}, err
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {a.Client}, "client_secret": {a.Secret}, "scope": {scope}}
	return Login{server: server + "/" + a.Tenant + "/oauth2/v2.0/token", form: func(time.Time) (url.Values, error) { return form, nil }}, nil
}
