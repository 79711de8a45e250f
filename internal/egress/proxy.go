package egress

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// Environment returns the proxies that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name, for Dialer.Proxies. It reads them once.
// Errors: a value that is no proxy.
func Environment() (func(*url.URL) (*url.URL, error), error) {
	config := httpproxy.FromEnvironment()
	for name, value := range map[string]string{"HTTPS_PROXY": config.HTTPSProxy, "HTTP_PROXY": config.HTTPProxy} {
		if value == "" {
			continue
		}
		if !strings.Contains(value, "://") { // as everybody else reads it
			value = "http://" + value
		}
		if _, err := parseProxy(value); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return config.ProxyFunc(), nil
}

// ParseProxy reads the data of a Secret in Flux's format: address, and username with password. Errors contain no values.
func ParseProxy(secret map[string][]byte) (*url.URL, error) {
	if len(secret["address"]) == 0 {
		return nil, errors.New("key address is missing: put the URL of the proxy there")
	}
	proxy, err := parseProxy(strings.TrimSpace(string(secret["address"])))
	if err != nil {
		return nil, fmt.Errorf("key address: %w", err)
	}
	switch user, password := string(secret["username"]), string(secret["password"]); {
	case user != "":
		proxy.User = url.UserPassword(user, password)
	case password != "":
		return nil, errors.New("key password needs the key username beside it")
	}
	return proxy, nil
}

// errProxyURL says what the URL of a proxy has to be; the value is not shown, as it may have a password.
var errProxyURL = errors.New("it is no proxy: write http://host:port, https://host:port or socks5://host:port")

func parseProxy(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" {
		return nil, errProxyURL
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errProxyURL
	}
	return &url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host}, nil
}

// ProxyError says that a proxy was not reached, or refused.
type ProxyError struct {
	// Tenant says that the proxy is one that a tenant named, and not one of the environment.
	Tenant bool
	// Err is why, in words of this package.
	Err error
}

// Error names the proxy by who gave it, and why.
func (e *ProxyError) Error() string {
	if e.Tenant {
		return fmt.Sprintf("%s: %v", ofSecret, e.Err)
	}
	return fmt.Sprintf("the proxy of the environment (HTTPS_PROXY, HTTP_PROXY): %v", e.Err)
}

// Unwrap returns why.
func (e *ProxyError) Unwrap() error { return e.Err }

// ofSecret is how a tenant's proxy is called.
const ofSecret = "the proxy of the Secret"

// Naming returns an error that is about a tenant's proxy with the Secret that names the proxy, and any other as it is.
func Naming(err error, secret string) error {
	var fault *ProxyError
	if !errors.As(err, &fault) || !fault.Tenant {
		return err
	}
	return &named{err, strings.ReplaceAll(err.Error(), ofSecret+":", ofSecret+" "+secret+":")}
}

// named is an error in other words.
type named struct {
	error
	text string
}

// Error returns the words.
func (n *named) Error() string { return n.text }

// Unwrap returns the error.
func (n *named) Unwrap() error { return n.error }

// ErrProxyRefuses means that a proxy does not make the connection that it was asked for.
var ErrProxyRefuses = errors.New("it refuses to connect to the host")

// ErrProxyUnauthorized means that a proxy wants credentials, or others.
var ErrProxyUnauthorized = errors.New("it wants a username and password, or others")

// proxyRefusal returns what a proxy's answer means that is no connection.
func proxyRefusal(code int) error {
	if code == 407 {
		return fmt.Errorf("%w (HTTP %d)", ErrProxyUnauthorized, code)
	}
	return fmt.Errorf("%w (HTTP %d)", ErrProxyRefuses, code)
}

// HostPort returns host and port of a URL, with the port of its scheme where it names none.
func HostPort(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	case u.Scheme == "socks5":
		port = "1080"
	default:
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
