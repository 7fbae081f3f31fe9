# Read by life.sh: a simulated day, as its owner would configure it, with a key that only root can read and that systemd
# hands to the service.
drop_in=/etc/systemd/system/$unit.d/key.conf
key=/etc/reachy-remembers/laptop-key
credential=/run/credentials/$unit/laptop-key
cp $config /tmp/config.before
over() { [ "$(property ActiveState)" != active ]; }

python3 /srv/laptop.py 8089 >/tmp/asked.log 2>&1 &
laptop=$!
sed -i 's|^body = .*|body = "sim"|; s|^day = .*|day = "/srv/day/day.toml"|; s|^log_words = .*|log_words = true|' $config
sed -i "s|^url = .*|url = \"http://127.0.0.1:8089/v1\"|; s|^key_file = .*|key_file = \"$credential\"|" $config
systemctl stop $unit
shown "without its key file it does not start" refused systemctl start $unit
shown "and says why" soon 10 journal_has "[think] key_file names $credential"
systemctl reset-failed $unit

(umask 077 && echo sk-of-this-house >$key)
printf '[Service]\nLoadCredential=laptop-key:%s\n' $key >$drop_in
systemctl daemon-reload
shown "starts with the key that systemd hands it" systemctl start $unit
shown "and nobody else can read it" refused runuser -u nobody -- cat $credential
shown "commands still reach it" sh -c 'reachy-remembers doctor --json | grep -q "\"service\": true"'
if [ -d /srv/models ]; then
  shown "hears and answers until the simulated day is over" soon 60 over
  shown "it heard" journal_has "in the blue box"
  shown "it asked the laptop with the key" has /tmp/asked.log "/v1/chat/completions Bearer sk-of-this-house"
  shown "and the key is not in the log" refused journal_has sk-of-this-house
fi
kill $laptop
rm -f $drop_in $key
cp /tmp/config.before $config
systemctl daemon-reload
shown "starts as before" systemctl restart $unit
