package keyservice

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"github.com/flotilla-io/flotilla/sources/cloudtoken"
	"github.com/flotilla-io/flotilla/sources/sops"
)

// azureCloud is one of Azure's clouds: where its vaults are, and who gives out tokens for them.
type azureCloud struct{ vaults, tokens string }

// azureClouds are all: a token for vaults is sent to no other host.
var azureClouds = []azureCloud{
	{"vault.azure.net", cloudtoken.AzurePublic},
	{"vault.azure.cn", cloudtoken.AzureChina},
	{"vault.usgovcloudapi.net", cloudtoken.AzureGovernment},
	{"managedhsm.azure.net", cloudtoken.AzurePublic},
}

var (
	azureVault = regexp.MustCompile(`^https://([A-Za-z0-9-]{3,24})\.([a-z.]+)/?$`)
	azureName  = regexp.MustCompile(`^[A-Za-z0-9-]{1,127}$`)
)

const azureVersion = "7.4"

// askAzure has a key opened by Azure Key Vault.
func (a *account) askAzure(ctx context.Context, of sops.Recipient) ([]byte, error) {
	vault, name, version := of.Fields["vault_url"], of.Fields["name"], of.Fields["version"]
	cloud, found := cloudOf(vault)
	switch {
	case !found:
		return nil, wrong("sops.azure_kv.vault_url is no https://NAME.vault.azure.net, nor one of another cloud of Azure")
	case !azureName.MatchString(name), version != "" && !azureName.MatchString(version):
		return nil, wrong("sops.azure_kv.name or version is none of a key")
	}
	if _, err := base64.RawURLEncoding.DecodeString(of.Wrapped); err != nil {
		return nil, wrong("sops.azure_kv.enc is not what SOPS writes")
	}
	token, err := a.azureToken(ctx, cloud)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]string{"alg": "RSA-OAEP-256", "value": of.Wrapped})
	if err != nil {
		return nil, wrong("its key is no text")
	}
	path := "/keys/" + name
	if version != "" {
		path += "/" + version
	}
	req, err := post(ctx, strings.TrimSuffix(vault, "/")+path+"/decrypt?api-version="+azureVersion, asJSON, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	said, err := a.ask(ctx, sops.KindAzure, req)
	if err != nil {
		return nil, err
	}
	switch said.status {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, refused("Azure Key Vault refuses (HTTP %d): let the application of %s decrypt with the key", said.status, azureKV)
	case http.StatusNotFound:
		return nil, refused("Azure Key Vault has no such key (HTTP %d)", said.status)
	default:
		return nil, refused("Azure Key Vault does not open it (HTTP %d): it was encrypted for another key or version", said.status)
	}
	var answer struct {
		Value string `json:"value"`
	}
	if json.Unmarshal(said.body, &answer) != nil {
		return nil, refused("the answer of Azure Key Vault makes no sense")
	}
	return decode(base64.RawURLEncoding, sops.KindAzure, answer.Value)
}

// cloudOf returns the cloud that a vault is in.
func cloudOf(vault string) (azureCloud, bool) {
	found := azureVault.FindStringSubmatch(vault)
	for _, cloud := range azureClouds {
		if found != nil && found[2] == cloud.vaults {
			return cloud, true
		}
	}
	return azureCloud{}, false
}

// azureToken returns a token for the vaults of a cloud.
func (a *account) azureToken(ctx context.Context, cloud azureCloud) (string, error) {
	return a.token(ctx, cloud.vaults, azureKV, func() (cloudtoken.Login, error) {
		application, err := cloudtoken.ParseAzure(a.secret[azureKV])
		if err != nil {
			return cloudtoken.Login{}, err
		}
		return application.At(cloud.tokens, "https://"+cloud.vaults+"/.default")
	})
}
