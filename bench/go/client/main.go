// The reference: one command on many hosts by golang.org/x/crypto/ssh, as many at a time as asked for.
// client KEY HOSTS PORT FANOUT COMMAND; HOSTS has an address and a host key on each line.
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

func main() {
	key, err := os.ReadFile(os.Args[1])
	check(err)
	signer, err := ssh.ParsePrivateKey(key)
	check(err)
	hosts, err := os.ReadFile(os.Args[2])
	check(err)
	port, command := os.Args[3], os.Args[5]
	width, err := strconv.Atoi(os.Args[4])
	check(err)
	places := make(chan struct{}, width)
	var all sync.WaitGroup
	for _, line := range strings.Split(strings.TrimSpace(string(hosts)), "\n") {
		all.Add(1)
		go func() {
			defer all.Done()
			places <- struct{}{}
			defer func() { <-places }()
			check(run(line, port, command, signer))
		}()
	}
	all.Wait()
}

func run(line, port, command string, signer ssh.Signer) error {
	address, text, _ := strings.Cut(line, " ")
	hostKey, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return err
	}
	config := &ssh.ClientConfig{
		User:              os.Getenv("USER"),
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback:   ssh.FixedHostKey(hostKey),
		HostKeyAlgorithms: []string{hostKey.Type()},
		Timeout:           10 * time.Second,
	}
	client, err := ssh.Dial("tcp", net.JoinHostPort(address, port), config)
	if err != nil {
		return err
	}
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return err
	}
	said, err := session.Output(command)
	if err == nil {
		fmt.Printf("%s: %s", address, said)
	}
	return err
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
