package cloudlogin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/cloudtoken"
)

// azureRegistries are registries, with the domain of their cloud.
var azureRegistries = regexp.MustCompile(`^[a-z0-9-]{1,63}\.(azurecr\.(?:io|cn|us))$`)

// azureCloud is one of Azure's clouds: who gives out tokens, and what they are to be for.
type azureCloud struct{ tokens, scope string }

var azureClouds = map[string]azureCloud{
	"azurecr.io": {cloudtoken.AzurePublic, "https://containerregistry.azure.net/.default"},
	"azurecr.cn": {cloudtoken.AzureChina, "https://management.chinacloudapi.cn/.default"},
	"azurecr.us": {cloudtoken.AzureGovernment, "https://management.usgovcloudapi.net/.default"},
}

// azureRegistry gets a token, which the registry exchanges for one of its own.
func azureRegistry(ctx context.Context, a asker, q Question) (kept, error) {
	host := azureRegistries.FindStringSubmatch(q.Host)
	if host == nil {
		return kept{}, fmt.Errorf("%w: %s is no REGISTRY.azurecr.io, which alone gets a login of Azure", ErrHost, q.Host)
	}
	token, ends, err := azureToken(ctx, a, q, azureClouds[host[1]])
	if err != nil {
		return kept{}, err
	}
	form := url.Values{"grant_type": {"access_token"}, "service": {q.Host}, "tenant": {q.text("tenantId")}, "access_token": {token}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+q.Host+"/oauth2/exchange", strings.NewReader(form.Encode()))
	if err != nil {
		return kept{}, fmt.Errorf("%w: %s", ErrHost, q.Host)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, body, err := a.ask(req)
	if err != nil {
		return kept{}, err
	}
	if status != http.StatusOK {
		return kept{}, fmt.Errorf("%w by %s (HTTP %d): give the application of the Secret the role AcrPull there", ErrRefused, q.Host, status)
	}
	var answer struct {
		Token string `json:"refresh_token"`
	}
	if json.Unmarshal(body, &answer) != nil || !usable(answer.Token) {
		return kept{}, fmt.Errorf("ask %s for a login: %w", q.Host, egress.ErrAnswer)
	}
	return kept{Login{Refresh: answer.Token}, ends}, nil
}

// devOps is Azure DevOps, as it is named where tokens are asked for.
const devOps = "499b84ac-1321-427f-aa17-267ca6975798/.default"

// azureGitHosts are Azure DevOps, under its name and the one before.
var azureGitHosts = regexp.MustCompile(`^(?:dev\.azure\.com|[a-z0-9-]{1,63}\.visualstudio\.com)$`)

// azureGit gets a token for the repositories of Azure DevOps.
func azureGit(ctx context.Context, a asker, q Question) (kept, error) {
	if !azureGitHosts.MatchString(q.Host) {
		return kept{}, fmt.Errorf("%w: %s is not dev.azure.com, which alone gets a login of Azure", ErrHost, q.Host)
	}
	token, ends, err := azureToken(ctx, a, q, azureCloud{cloudtoken.AzurePublic, devOps})
	return kept{Login{Bearer: token}, ends}, err
}

func azureToken(ctx context.Context, a asker, q Question, cloud azureCloud) (string, time.Time, error) {
	application := cloudtoken.AzureApplication{Tenant: q.text("tenantId"), Client: q.text("clientId"), Secret: q.text("clientSecret"), Certificate: q.text("clientCertificate")}
	by, err := application.At(cloud.tokens, cloud.scope)
	if err != nil {
		return "", time.Time{}, err
	}
	token, ends, err := cloudtoken.Ask(ctx, by, a.client, a.now)
	if errors.Is(err, ErrRefused) {
		return "", time.Time{}, fmt.Errorf("%w: correct tenantId, clientId and clientSecret in the Secret", err)
	}
	return token, ends, err
}
