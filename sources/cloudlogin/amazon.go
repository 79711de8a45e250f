package cloudlogin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/sigv4"
)

// amazonHosts are registries of accounts, with the region, and what all hosts of their part of the cloud end with.
var amazonHosts = regexp.MustCompile(`^[0-9]{12}\.dkr\.ecr(?:-fips)?\.([a-z]{2}(?:-[a-z]+)+-[0-9])\.(amazonaws\.com(?:\.cn)?)$`)

// amazonRegistry asks ECR for a login.
func amazonRegistry(ctx context.Context, a asker, q Question) (kept, error) {
	host := amazonHosts.FindStringSubmatch(q.Host)
	if host == nil {
		return kept{}, fmt.Errorf("%w: %s is no ACCOUNT.dkr.ecr.REGION.amazonaws.com, which alone gets a login of AWS", ErrHost, q.Host)
	}
	keys, err := amazonKeys(q)
	if err != nil {
		return kept{}, err
	}
	body := []byte("{}")
	server := "api.ecr." + host[1] + "." + host[2]
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+server+"/", strings.NewReader(string(body)))
	if err != nil {
		return kept{}, fmt.Errorf("%w: %s", ErrHost, q.Host)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken")
	sigv4.Sign(req, body, keys, sigv4.Scope{Region: host[1], Service: "ecr"}, a.now)
	status, answer, err := a.ask(req)
	if err != nil {
		return kept{}, err
	}
	if status != http.StatusOK {
		return kept{}, amazonRefusal(server, status, answer)
	}
	login, err := parseAmazon(answer)
	if err != nil {
		return kept{}, fmt.Errorf("ask %s for a login: %w", server, err)
	}
	return login, nil
}

func amazonKeys(q Question) (sigv4.Keys, error) {
	keys := sigv4.Keys{ID: q.text("accesskey"), Secret: q.text("secretkey")}
	if !usable(keys.ID) || strings.Contains(keys.ID, "/") || keys.Secret == "" {
		return sigv4.Keys{}, fmt.Errorf("%w: it takes accesskey and secretkey", ErrCredentials)
	}
	return keys, nil
}

// amazonGitHosts are CodeCommit, with the region.
var amazonGitHosts = regexp.MustCompile(`^git-codecommit(?:-fips)?\.([a-z]{2}(?:-[a-z]+)+-[0-9])\.amazonaws\.com(?:\.cn)?$`)

// gitPasswordLife is how long CodeCommit takes a password.
const gitPasswordLife = 15 * time.Minute

// amazonGit signs a password for a repository of CodeCommit; nothing is asked.
func amazonGit(_ context.Context, a asker, q Question) (kept, error) {
	host := amazonGitHosts.FindStringSubmatch(q.Host)
	if host == nil {
		return kept{}, fmt.Errorf("%w: %s is no git-codecommit.REGION.amazonaws.com, which alone gets a login of AWS", ErrHost, q.Host)
	}
	keys, err := amazonKeys(q)
	if err != nil {
		return kept{}, err
	}
	return kept{Login{Username: keys.ID, Password: sigv4.GitPassword(keys, q.Host, q.Path, host[1], a.now)}, a.now.Add(gitPasswordLife)}, nil
}

// parseAmazon reads the login in an answer of ECR.
func parseAmazon(answer []byte) (kept, error) {
	var said struct {
		Data []struct {
			Token string  `json:"authorizationToken"`
			Ends  float64 `json:"expiresAt"`
		} `json:"authorizationData"`
	}
	if json.Unmarshal(answer, &said) != nil || len(said.Data) == 0 {
		return kept{}, egress.ErrAnswer
	}
	text, err := base64.StdEncoding.DecodeString(said.Data[0].Token)
	user, password, found := strings.Cut(string(text), ":")
	if err != nil || !found || !usable(user) || !usable(password) {
		return kept{}, egress.ErrAnswer
	}
	const latest = 1 << 40 // seconds
	return kept{Login{Username: user, Password: password}, time.Unix(int64(min(max(said.Data[0].Ends, 0), latest)), 0)}, nil
}

// amazonRefusals are the errors of ECR that are known, and what is to be done.
var amazonRefusals = map[string]string{
	"AccessDeniedException":       "let the user of accesskey do ecr:GetAuthorizationToken",
	"UnrecognizedClientException": "accesskey is not known there: correct it in the Secret",
	"InvalidSignatureException":   "secretkey is not that of accesskey: correct it in the Secret",
}

func amazonRefusal(server string, status int, answer []byte) error {
	var said struct {
		Type string `json:"__type"`
	}
	_ = json.Unmarshal(answer, &said) // what cannot be read says nothing more than the status does
	kind := said.Type[strings.LastIndex(said.Type, "#")+1:]
	if todo, known := amazonRefusals[kind]; known {
		return fmt.Errorf("%w by %s (%s): %s", ErrRefused, server, kind, todo)
	}
	return fmt.Errorf("%w by %s (HTTP %d): check accesskey and secretkey in the Secret", ErrRefused, server, status)
}
